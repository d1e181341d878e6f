// SPDX-License-Identifier: Apache-2.0
// Some twenty frames of JavaScript, those of its loader among them, over Node.js's own.
'use strict';
function work() {
  let n = 0;
  for (let i = 0; i < 30000; i++) n += (i * i) % 7;
  return n;
}
function level(n) {
  return n === 0 ? work() : level(n - 1) + 1;
}
const pause = Number(process.argv[2]) * 1000;
function main() {
  do level(10); while (!pause);
  setTimeout(main, pause);
}
main();
