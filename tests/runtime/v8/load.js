'use strict';
const vm = require('vm');
class Shape {
  constructor(n) { this.n = n; this.k = []; }
  get area() { let s = 0; for (let i = 0; i < 50; i++) s += this.n * i; return s; }
  static make(n) { return new Shape(n); }
}
class Square extends Shape {
  constructor(n) { super(n); this.side = Math.hypot(n, n); }
  toJSON() { return { n: this.n, side: this.side, list: [1, 2, 3].map((x) => x * this.n) }; }
}
function recurse(n) {
  if (n === 0) return strings();
  return recurse(n - 1) + 1;
}
function strings() {
  let s = '';
  for (let i = 0; i < 100; i++) s += String.fromCharCode(65 + (i % 26)) + i;
  return s.split('1').join('x').replace(/x+/g, (m) => m.length).length;
}
function sorts() {
  const a = Array.from({ length: 300 }, (_, i) => (i * 7919) % 1000);
  a.sort(function compare(x, y) { return x - y; });
  return a.reduce((p, c) => p + c, 0);
}
function regex() {
  let n = 0;
  const re = /(\w+)\s+(\d{2,4})-(a|b|c)*?z/g;
  const text = 'word 123-abcabcz other 99-z '.repeat(20);
  let m;
  while ((m = re.exec(text)) !== null) n += m[0].length;
  return n;
}
function* gen(n) { for (let i = 0; i < n; i++) yield i * 2; }
function generators() { let t = 0; for (const x of gen(100)) t += x; return t; }
function throws(n) { if (n > 3) throw new Error('deep'); return throws(n + 1); }
function exceptions() { let c = 0; for (let i = 0; i < 10; i++) { try { throws(0); } catch (e) { c += e.message.length; } } return c; }
function json() { return JSON.parse(JSON.stringify([new Square(3), new Square(4), { a: [1, 2, { b: 'c' }] }])).length; }
function maps() { const m = new Map(); for (let i = 0; i < 200; i++) m.set('k' + i, i); let t = 0; m.forEach((v) => { t += v; }); return t; }
function garbage() { const keep = []; for (let i = 0; i < 500; i++) keep.push({ i, a: new Array(20).fill(i) }); return keep.length; }
function proxies() { const p = new Proxy({}, { get(t, k) { return String(k).length; } }); let t = 0; for (let i = 0; i < 100; i++) t += p.abc; return t; }
function evals(i) { return new Function('a', 'let s=0;\nfor(let i=0;i<20;i++)\n  s+=a*i;\nreturn s //' + i)(3) + eval('strings() + ' + i) + vm.runInThisContext('(function dyn(){let z=0;for(let i=0;i<30;i++)z+=i;return z})()', { filename: 'dyn.js' }); }
function spread(...args) { return Math.max(...args) + Reflect.apply(Math.min, null, args); }
function areas() { let t = 0; for (let i = 0; i < 30; i++) t += Shape.make(i).area + new Square(i).area; return t; }
const bytes = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, 1, 6, 1, 96, 1, 127, 1, 127, 3, 2, 1, 0, 7, 8, 1, 4, 108, 111, 111, 112, 0, 0, 10, 30, 1, 28, 1, 1, 127, 3, 64, 32, 1, 32, 0, 106, 33, 1, 32, 0, 65, 1, 107, 34, 0, 65, 0, 74, 13, 0, 11, 32, 1, 11]);
let wasm = null;
try { wasm = new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports.loop; } catch (e) { console.error('no wasm', e.message); }
async function step(i) { await null; return areas() + i; }
async function asyncs() { let t = 0; for (let i = 0; i < 5; i++) t += await step(i); return t; }
let round = 0;
async function main() {
  for (;;) {
    recurse(30); sorts(); regex(); generators(); exceptions(); json(); maps(); garbage(); proxies(); evals(round++); spread(1, 2, 3, 4); areas();
    if (wasm) wasm(3000);
    await asyncs();
    if (round % 50 === 0) await new Promise((r) => setImmediate(r));
  }
}
main();
