'use strict';
// Functions of Wasm that have a name, none, and that of an export.
//
// (module (import "e" "back" (func (result i32)))
//   (func $spin (param i32) (result i32) (local i32)
//     (loop (local.set 1 (i32.add (i32.mul (local.get 1) (i32.const 31)) (local.get 0)))
//       (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
//     (local.get 1))
//   (func (param i32) (result i32) (i32.add (call 1 (local.get 0)) (i32.const 1)))
//   (func (export "enter") (param i32) (result i32)
//     (i32.add (call 2 (local.get 0)) (i32.const 1))))
const MODULE = new Uint8Array([
  0, 97, 115, 109, 1, 0, 0, 0, 1, 10, 2, 96, 0, 1, 127, 96, 1, 127, 1, 127, 2, 10,
  1, 1, 101, 4, 98, 97, 99, 107, 0, 0, 3, 4, 3, 1, 1, 1, 7, 9, 1, 5, 101, 110,
  116, 101, 114, 0, 3, 10, 50, 3, 28, 1, 1, 127, 3, 64, 32, 1, 65, 31, 108, 32, 0, 106,
  33, 1, 32, 0, 65, 1, 107, 34, 0, 13, 0, 11, 32, 1, 11, 9, 0, 32, 0, 16, 1, 65,
  1, 106, 11, 9, 0, 32, 0, 16, 2, 65, 1, 106, 11, 0, 20, 4, 110, 97, 109, 101, 1, 13,
  2, 0, 4, 98, 97, 99, 107, 1, 4, 115, 112, 105, 110,
]);
const e = { back: () => 1 };
const wasm = new WebAssembly.Instance(new WebAssembly.Module(MODULE), { e }).exports;
function go() {
  for (;;) wasm.enter(100000);
}
go();
