// SPDX-License-Identifier: Apache-2.0
// A program whose call tree is known, as calltree.py reads it. It burns CPU until it is killed, and
// is understood from Node.js 14 on. Arguments: bits of the loops; "main", "tasks",
// "workers" or "profiled": in a worker, which ends when there is a file "end". It says "warm" after
// four seconds of CPU.
'use strict';
const fs = require('fs');
const { Worker, isMainThread, workerData } = require('worker_threads');
const other = require('./other.js');

const [bits, mode] = isMainThread ? [Number(process.argv[2]), process.argv[3]] : workerData;
let sink = 0;

// The generator meets each number below a power of two once.
function spin() {
  let n = 0, x = 1, m = (1 << bits) - 1; // burns
  do { n = (n * 25173 + 13849) & m; x = ((x & 4095) * 31 + n) & 65535; } while (n !== 0); // one
  m = 4 * m + 3; // burns
  do { n = (n * 25173 + 13849) & m; x = ((x & 4095) * 31 + n) & 65535; } while (n !== 0); // four
  return x; // burns
}

class Thing {
  constructor() {
    this.x = spin(); // calls: spin
  }

  method() {
    return spin(); // calls: spin
  }

  get value() {
    return spin(); // calls: spin
  }

  toJSON() {
    return spin(); // calls: spin
  }
}

function byMethods() {
  const thing = new Thing(); // calls: Thing
  let x = thing.method(); // calls: method
  x += thing.value; // calls: get~value by library
  return x;
}

function recurse(depth) {
  if (depth === 0) {
    return spin(); // calls: spin
  }
  return recurse(depth - 1) + 1; // calls: recurse
}

function deep1() {
  return deep2() + 1; // calls: deep2
}

function deep2() {
  return deep3() + 1; // calls: deep3
}

function deep3() {
  let x = deep4(); // calls: deep4
  x += deep5(); // calls: deep5
  return x;
}

function deep4() {
  return deep5() + 1; // calls: deep5
}

function deep5() {
  return spin() + 1; // calls: spin
}

function fails() {
  const x = spin(); // calls: spin
  throw new Error(x); // burns
}

function byException() {
  let x = 0;
  try {
    x += fails(); // calls: fails
  } catch (e) {
    x += spin(); // calls: spin
  } finally {
    x += spin(); // calls: spin
  }
  return x;
}

function* generate(n) { // burns
  for (let i = 0; i < n; i++) { // burns
    yield spin(); // calls: spin
  }
}

function* delegate(n) { // burns
  yield* generate(n); // calls: generate by library
}

function byGenerator() {
  let x = 0; // burns
  for (const y of delegate(2)) { // calls: delegate by library
    x += y; // burns
  }
  return x; // burns
}

function compare(a, b) {
  return spin() < 0 ? 0 : a - b; // calls: spin
}

function bySort() {
  return [2, 1].sort(compare); // calls: compare by library
}

function mapped(i) {
  return i + spin(); // calls: spin
}

function byMap() {
  return [1, 2].map(mapped); // calls: mapped by library
}

const thing = Object.create(Thing.prototype);

function byJson() {
  return JSON.stringify([thing]); // calls: toJSON by library
}

function replacer() {
  return spin(); // calls: spin
}

function byRegExp() {
  return 'one two'.replace(/w/, replacer); // calls: replacer by library
}

function matches() {
  return /^(x+x+)+y/.test('x'.repeat(bits + 2)); // burns
}

function close(f) {
  return function closed() {
    return f(); // calls: spin
  };
}

const closure = close(spin);

function byClosure() {
  return closure(); // calls: closed
}

function byApply() {
  return Reflect.apply(mapped, null, [1]); // calls: mapped by library
}

function byOther() {
  return other.recurse(3, bits); // calls: other.js:recurse
}

// (module (import "e" "back" (func (result i32)))
//   (func (export "enter") (result i32) call 0 i32.const 1 i32.add))
const MODULE = new Uint8Array([
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 127, 2, 10, 1, 1, 101, 4, 98, 97, 99, 107, 0, 0,
  3, 2, 1, 0, 7, 9, 1, 5, 101, 110, 116, 101, 114, 0, 1, 10, 9, 1, 7, 0, 16, 0, 65, 1, 106, 11,
]);

function back() {
  return spin(); // calls: spin
}

const wasm = new WebAssembly.Instance(new WebAssembly.Module(MODULE), { e: { back } }).exports;

function byWasm() {
  return wasm.enter(); // calls: back by enter
}

function garbage() { // native garbage burns
  let kept = null;
  for (let i = 0; i < 3000; i++) { // burns
    kept = { kept: i & 63 ? kept : null, data: new Array(i & 63).fill(i) }; // burns
  }
  return kept;
}

function turn() {
  recurse(20); // calls: recurse [1]
  deep1(); // calls: deep1 [2]
  byMethods(); // calls: byMethods [3]
  byException(); // calls: byException [3]
  byGenerator(); // calls: byGenerator [2]
  bySort(); // calls: bySort [1]
  byMap(); // calls: byMap [2]
  byJson(); // calls: byJson [1]
  byRegExp(); // calls: byRegExp [1]
  matches(); // calls: matches
  byClosure(); // calls: byClosure [1]
  byApply(); // calls: byApply [1]
  byOther(); // calls: byOther [1]
  byWasm(); // calls: byWasm [1]
  garbage(); // calls: garbage
}

function work() {
  for (;;) { // burns
    turn(); // calls: turn
    warmUp(); // calls: warmUp
  }
}

let warm = false;

// Says once that the compilers have done what they do.
function warmUp() {
  if (!warm && process.cpuUsage().user > 4e6) { // burns
    warm = true;
    fs.writeSync(1, 'warm\n'); // burns
  } else if (mode === 'profiled' && fs.existsSync('end')) { // burns
    process.exit(); // burns
  }
}

async function leafTask() {
  await null; // burns
  return spin(); // calls: spin
}

async function middleTask() {
  const x = spin(); // calls: spin
  return x + (await leafTask()); // calls: leafTask
}

async function topTask() {
  const x = await middleTask(); // calls: middleTask
  return x + spin(); // calls: spin
}

async function tasks() {
  for (;;) {
    sink += await topTask(); // calls: topTask
    warmUp(); // calls: warmUp
    await new Promise(setImmediate); // burns
  }
}

if (mode === 'tasks') {
  tasks(); // calls: tasks
} else if (mode === 'profiled' && isMainThread) {
  new Worker(__filename, { workerData: [bits, mode] });
  setInterval(() => {}, 1000000);
} else {
  if (mode === 'workers' && isMainThread) {
    new Worker(__filename, { workerData: [bits, mode] }); // burns
    new Worker(__filename, { workerData: [bits, mode] }); // burns
  } else {
    work(); // calls: work
  }
}
