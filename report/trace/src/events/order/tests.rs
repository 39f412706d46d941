use usdtrec_testing::SplitMix64;

use crate::events::order::pending::{LoadedBlock, Mark, SampleKey, merged, windows};

/// Samples as (time, block, offset).
type Samples = Vec<(u64, usize, u32)>;

fn loaded(block: usize, times: &[u64]) -> LoadedBlock {
    let mut keys: Vec<SampleKey> = (0..)
        .zip(times)
        .map(|(offset, &time)| SampleKey { time, offset })
        .collect();
    keys.sort_by_key(|key| key.time);
    LoadedBlock {
        block,
        keys,
        ..LoadedBlock::default()
    }
}

/// Walks blocks as `in_order` does, `batch` at a time, and gives what was shown and how many
/// blocks waited at most.
fn walk(blocks: &[Vec<u64>], batch: usize, window: usize) -> (Samples, usize) {
    let mut plan: Vec<(u64, usize)> = blocks
        .iter()
        .enumerate()
        .map(|(index, times)| (times.iter().min().copied().unwrap(), index))
        .collect();
    plan.sort_by_key(|&(first, _)| first);
    let (mut pending, mut shown, mut most) = (Vec::<LoadedBlock>::new(), Vec::new(), 0);
    for at in (0..plan.len()).step_by(batch) {
        let end = (at + batch).min(plan.len());
        pending.extend(
            plan[at..end]
                .iter()
                .map(|&(_, index)| loaded(index, &blocks[index])),
        );
        pending.sort_by_key(|block| block.block);
        most = most.max(pending.len());
        let mark = plan.get(end).map(|&(time, block)| Mark { time, block });
        let ends: Vec<usize> = pending.iter().map(|block| block.before(mark)).collect();
        for part in windows(&pending, &ends, window) {
            for entry in merged(&pending, &part) {
                let block = pending[entry.slot as usize].block;
                shown.push((entry.time, block, entry.offset));
            }
        }
        for (block, end) in pending.iter_mut().zip(ends) {
            block.shown = end;
        }
        pending.retain(|block| block.shown < block.keys.len());
    }
    assert!(pending.is_empty(), "all is shown");
    (shown, most)
}

/// The same samples, plainly sorted.
fn sorted(blocks: &[Vec<u64>]) -> Samples {
    let mut all: Samples = Vec::new();
    for (block, times) in blocks.iter().enumerate() {
        all.extend(
            (0..)
                .zip(times)
                .map(|(offset, &time)| (time, block, offset)),
        );
    }
    all.sort_unstable();
    all
}

fn compare(blocks: &[Vec<u64>]) -> usize {
    let expected = sorted(blocks);
    let mut most = 0;
    for (batch, window) in [(1, 1), (1, 1000), (2, 7), (5, 64), (1000, 3)] {
        let (shown, waiting) = walk(blocks, batch, window);
        assert_eq!(shown, expected, "batches of {batch}, windows of {window}");
        most = most.max(waiting - batch.min(waiting));
    }
    most
}

#[test]
fn random_overlaps_come_out_sorted() {
    for seed in 0..200 {
        let mut numbers = SplitMix64(seed);
        let (blocks, spread) = (1 + numbers.below(12), 1 + numbers.below(60));
        let blocks: Vec<Vec<u64>> = (0..blocks)
            .map(|block| {
                let start = block * numbers.below(40);
                let count = 1 + numbers.below(30);
                (0..count).map(|_| start + numbers.below(spread)).collect()
            })
            .collect();
        compare(&blocks);
    }
}

#[test]
fn equal_times_keep_the_order_of_the_file_and_need_no_memory() {
    let most = compare(&vec![vec![7; 10]; 30]);
    assert_eq!(most, 0, "no block waits for another");
}

#[test]
fn a_late_block_and_one_that_spans_all_come_out_sorted() {
    let mut blocks: Vec<Vec<u64>> = (0..20)
        .map(|at| (at * 10..at * 10 + 15).collect())
        .collect();
    blocks.push(vec![0, 1, 2]);
    blocks.insert(10, (0..300).step_by(7).collect());
    compare(&blocks);
}

#[test]
fn rounds_that_are_reversed_come_out_sorted() {
    let blocks: Vec<Vec<u64>> = (0..20)
        .rev()
        .map(|at| (at * 10..at * 10 + 15).rev().collect())
        .collect();
    compare(&blocks);
}

#[test]
fn in_a_plain_trace_only_neighbours_wait() {
    let blocks: Vec<Vec<u64>> = (0..100)
        .map(|at| (at * 10..at * 10 + 15).collect())
        .collect();
    assert!(compare(&blocks) <= 2);
}
