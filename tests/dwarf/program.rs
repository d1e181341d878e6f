// SPDX-License-Identifier: Apache-2.0
// Generics, closures, iterators and a panic, as Rust's compiler tells of them.
use std::collections::{BTreeMap, HashMap};

#[derive(Default)]
struct Table<T> {
    values: BTreeMap<String, Vec<T>>,
    index: HashMap<u32, String>,
}

impl<T: Copy + Into<f64> + PartialOrd> Table<T> {
    fn add(&mut self, key: &str, value: T) {
        self.values.entry(key.to_string()).or_default().push(value);
        self.index.insert(key.len() as u32, key.repeat(2));
    }

    fn sum(&self) -> f64 {
        self.values.values().flat_map(|v| v.iter()).map(|&x| x.into() * 1.5).filter(|x| *x > 1.0).sum()
    }
}

fn main() {
    let n = std::env::args().count() as u32 * 100;
    let mut table: Table<f32> = Table::default();
    for i in 0..n {
        table.add(&format!("key{}", i % 17), i as f32);
    }
    let mut words: Vec<_> = table.values.keys().cloned().collect();
    words.sort_by(|a, b| b.cmp(a));
    println!("{} {:?} {}", table.sum(), words.first().unwrap(), table.index.len());
}
