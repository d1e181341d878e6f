/* SPDX-License-Identifier: Apache-2.0 */
/* The scheduler's slice of a thread that works for microseconds and then waits for another one.
 * Names are read by two threads that take turns. Where sixteen threads of a program keep two CPUs
 * busy, each turn would wait for all of them: some ten milliseconds, twice a read, and the names of
 * a program that begins take seconds. */
#pragma once

/* Gives the calling thread the shortest slice: it gets a CPU sooner, and no larger part of it.
 * Needs no privilege. It has no effect before Linux 6.12, and where a system call filter refuses
 * it, as that of our unit: a unit, like a pod, is scheduled as one group, and waits for few others.
 * Up to 6.5 the scheduler prefers threads that have slept anyway. */
void thread_shorten_slice(void);
