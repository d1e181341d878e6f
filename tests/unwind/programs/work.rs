// SPDX-License-Identifier: Apache-2.0
//! Rust: threads, closures, panics that are caught, sorting and hashing, for so many CPU seconds.
use std::collections::{BTreeMap, HashMap};
use std::hint::black_box;

extern "C" {
    /// CPU time of the process in microseconds.
    fn clock() -> i64;
}

fn burning(seconds: f64) -> bool {
    // SAFETY: takes nothing, keeps nothing.
    (unsafe { clock() } as f64) < seconds * 1e6
}

fn walk(depth: u32, at_the_end: &dyn Fn(u32) -> u64) -> u64 {
    if depth == 0 {
        return at_the_end(7);
    }
    black_box(walk(depth - 1, at_the_end)) ^ u64::from(depth)
}

fn words(n: u32) -> u64 {
    let mut by_name: HashMap<String, u64> = HashMap::new();
    for i in 0..n {
        *by_name.entry(format!("name-{}", i % 97)).or_default() += u64::from(i);
    }
    let ordered: BTreeMap<_, _> = by_name.iter().collect();
    ordered.values().map(|v| **v).sum()
}

fn sorted(n: u64) -> u64 {
    let mut numbers: Vec<u64> = (0..n).map(|i| i.wrapping_mul(6364136223846793005).rotate_left(17)).collect();
    numbers.sort_by_key(|x| x.count_ones());
    numbers[numbers.len() / 2]
}

fn caught(depth: u32) -> u64 {
    std::panic::catch_unwind(|| walk(depth, &|_| panic!("to the top"))).unwrap_or(1)
}

fn work(seconds: f64) {
    while burning(seconds) {
        black_box(walk(30, &|n| words(n * 100)));
        black_box(walk(3, &|_| sorted(5000)));
        black_box(caught(20));
    }
}

fn main() {
    let seconds: f64 = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(1.0);
    std::panic::set_hook(Box::new(|_| {}));
    let other = std::thread::spawn(move || work(seconds));
    work(seconds);
    other.join().unwrap();
}
