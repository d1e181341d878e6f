'use strict';
function burn(n) {
  let x = 0;
  for (let i = 0; i < n; i++)
    x = (x * 31 + i) | 0;
  return x;
}
function small() { return burn(200000); }
function large() { return burn(200000) + burn(200000) + burn(200000); }
function recurse(n) { return n === 0 ? large() : recurse(n - 1); }
let t = 0;
function root() {
  for (;;) { t += small(); t += recurse(10); }
}
root();
