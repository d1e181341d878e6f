'use strict';
const text = 'word 123-abcabcz other 99-z '.repeat(2000);
function search() {
  let n = 0;
  for (const found of text.matchAll(/(\w+)\s+(\d{2,4})-(a|b|c)*?z/g)) n += found[0].length;
  return n;
}
for (;;) search();
