// SPDX-License-Identifier: Apache-2.0
// Functions of the same names as those of calls.js, on other lines.
'use strict';

function recurse(depth, bits) {
  return depth === 0 ? spin(bits) : recurse(depth - 1, bits) + 1; // calls: other.js:spin other.js:recurse
}

module.exports = { recurse };

function spin(bits) {
  let n = 0, x = 1, m = (1 << bits) - 1; // burns
  do { n = (n * 25173 + 13849) & m; x = ((x & 4095) * 31 + n) & 65535; } while (n !== 0); // one
  m = 4 * m + 3; // burns
  do { n = (n * 25173 + 13849) & m; x = ((x & 4095) * 31 + n) & 65535; } while (n !== 0); // four
  return x; // burns
}
