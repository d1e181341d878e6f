# SPDX-License-Identifier: Apache-2.0
"""Shares of few samples, judged against an aim."""

import math

# A judgement that is wrong of a share which is just the aim, once in so many.
ONCE_IN = 1000


def reaches(good, n, aim):
    """Whether `good` of n can be `aim` percent of all there is: false only where so few would come
    by chance once in ONCE_IN times.

    By the binomial distribution of the others, summed exactly; of 300 samples for 99 % ten may be
    missing, of 10,000 for 99.9 % 21.
    """
    others, share = n - good, 1 - aim / 100
    if others <= 0 or n == 0:
        return n > 0
    fewer = sum(
        math.exp(
            math.lgamma(n + 1)
            - math.lgamma(k + 1)
            - math.lgamma(n - k + 1)
            + k * math.log(share)
            + (n - k) * math.log1p(-share)
        )
        for k in range(others)
    )
    return 1 - fewer >= 1 / ONCE_IN
