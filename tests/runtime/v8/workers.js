'use strict';
const { Worker, isMainThread } = require('worker_threads');
function burn(n) { let x = 0; for (let i = 0; i < n; i++) x = (x * 31 + i) | 0; return x; }
function inside() { for (let t = 0;;) t += burn(100000); }
if (isMainThread) for (let i = 0; i < 16; i++) new Worker(__filename); else inside();
