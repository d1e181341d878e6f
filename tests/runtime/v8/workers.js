'use strict';
// Sixteen threads, each with a V8 of its own, and a line when the last of them is at its work.
const { Worker, isMainThread, parentPort } = require('worker_threads');
const THREADS = 16;
function burn(n) { let x = 0; for (let i = 0; i < n; i++) x = (x * 31 + i) | 0; return x; }
function inside() {
  parentPort.postMessage(burn(100000));
  for (let t = 0;;) t += burn(100000);
}
let begun = 0;
function one() { if (++begun === THREADS) console.log('all at work'); }
if (isMainThread) for (let i = 0; i < THREADS; i++) new Worker(__filename).on('message', one);
else inside();
