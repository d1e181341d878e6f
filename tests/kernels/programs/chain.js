// SPDX-License-Identifier: Apache-2.0
'use strict';
// Functions that call each other, for the seconds of CPU time that are asked for.
function inner() {
  let n = 0;
  for (let i = 0; i < 100000; i++) n += (i * i) % 7;
  return n;
}
function middle() {
  return inner() + 1;
}
function outer() {
  return middle() + 1;
}
function main(seconds) {
  const began = process.cpuUsage();
  while (process.cpuUsage(began).user < seconds * 1e6) outer();
}
main(Number(process.argv[2]));
