//! Stacks of two recordings: which frames have another share of the hits, beyond noise.
//!
//! Frames are the same if their functions have one name, and code without a name if it is of one build, whatever the
//! paths are: upgrades and containers have others. The shares of each frame that has at least a hundredth of the hits
//! are compared as `diff` compares shares ([`crate::diff`]), corrected for the number of frames.

use std::cmp::Reverse;

use foldhash::HashMap;
use usdtrec_trace::error::ReportError;
use usdtrec_trace::question_error::QuestionError;

use crate::diff::FALSE_ALARMS;
use crate::diff::metric::NoiseTest;
use crate::diff::noise::Mean;
use crate::diff::sides::Sides;
use crate::diff::significance::Level;
use crate::diff::slices::{Counts, add, total};
use crate::stacks::path::Step;
use crate::stacks::sliced::SlicedPath;
use crate::stacks::tree::sort_children;
use crate::stats::keys::stack::SameFiles;
use crate::stats::ratio::share;

/// The least share of hits, in one recording at least, with which a frame is tested: one of so many.
const MIN_SHARE: u64 = 100;
/// Nodes of a tree: some hundred bytes each.
const MAX_NODES: usize = 1 << 17;

/// The result of the comparison of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShareVerdict {
    /// Its share differs by more than noise.
    Beyond,
    /// It does not.
    Within,
    /// It has too few hits to be tested.
    #[default]
    Untested,
}

/// A frame in a tree of both recordings.
#[derive(Debug, Default)]
pub struct DiffNode {
    /// `None` for the root, which is above all.
    pub step: Option<Step>,
    /// Hits of all stacks that go through it, slice by slice.
    counts: Sides<Counts>,
    /// Hits of the stacks that end in it.
    pub own: Sides<u64>,
    /// Shares of all hits of the event, 0 to 1.
    pub shares: Sides<f64>,
    /// The result of comparing the shares.
    pub verdict: ShareVerdict,
    /// Places of the next nodes, the greatest first.
    pub children: Vec<usize>,
}

/// The stacks of an event in both recordings. Its first node is the root.
#[derive(Debug)]
pub struct DiffTree {
    /// The event.
    pub name: String,
    /// The frames, the root first.
    pub nodes: Vec<DiffNode>,
}

/// Where the nodes of a tree are, by the place above and the step.
struct Places<'f> {
    same_files: &'f SameFiles,
    known: HashMap<(usize, Vec<u8>), usize>,
}

impl DiffTree {
    /// The stacks of an event. Files of B that are those of A under another path are in `same_files`.
    ///
    /// # Errors
    /// If there are too many.
    pub(crate) fn new(
        name: String,
        paths: Sides<&[SlicedPath]>,
        same_files: &SameFiles,
    ) -> Result<Self, ReportError> {
        let mut places = Places {
            same_files: &SameFiles::default(),
            known: HashMap::default(),
        };
        let mut tree = Self {
            name,
            nodes: vec![DiffNode::default()],
        };
        for path in paths.a {
            tree.add(path, |sides| &mut sides.a, |own| &mut own.a, &mut places)?;
        }
        places.same_files = same_files;
        for path in paths.b {
            tree.add(path, |sides| &mut sides.b, |own| &mut own.b, &mut places)?;
        }
        tree.share();
        // The greatest shares in both first, equals by their names.
        let order = |node: &DiffNode| {
            let both = node.shares.a + node.shares.b;
            let name = node.step.as_ref().map(Step::order);
            (Reverse((both * 1e12) as u64), name)
        };
        sort_children(&mut tree.nodes, |node| &mut node.children, order);
        Ok(tree)
    }

    /// Hits of the event.
    pub fn hits(&self) -> Sides<u64> {
        let root = self.nodes.first();
        root.map_or(Sides { a: 0, b: 0 }, |root| {
            root.counts.map(|one| total(&one))
        })
    }

    fn add(
        &mut self,
        path: &SlicedPath,
        counts: fn(&mut Sides<Counts>) -> &mut Counts,
        own: fn(&mut Sides<u64>) -> &mut u64,
        places: &mut Places<'_>,
    ) -> Result<(), ReportError> {
        let mut at = 0;
        for step in &path.steps {
            if let Some(node) = self.nodes.get_mut(at) {
                add(counts(&mut node.counts), &path.hits);
            }
            let place = self.nodes.len();
            let order = step.common_order(places.same_files);
            let next = *places.known.entry((at, order)).or_insert(place);
            if next == place {
                if place >= MAX_NODES {
                    return Err(QuestionError::TooManyStacks.into());
                }
                self.nodes.push(DiffNode {
                    step: Some(step.clone()),
                    ..DiffNode::default()
                });
                if let Some(parent) = self.nodes.get_mut(at) {
                    parent.children.push(place);
                }
            }
            at = next;
        }
        if let Some(node) = self.nodes.get_mut(at) {
            add(counts(&mut node.counts), &path.hits);
            *own(&mut node.own) += total(&path.hits);
        }
        Ok(())
    }

    /// Sets shares and verdicts.
    fn share(&mut self) {
        let Some(root) = self.nodes.first() else {
            return;
        };
        let all = root.counts;
        let totals = self.hits();
        for node in &mut self.nodes {
            node.shares = Sides {
                a: share(total(&node.counts.a), totals.a),
                b: share(total(&node.counts.b), totals.b),
            };
        }
        let is_tested = |node: &DiffNode| {
            let least = 1.0 / MIN_SHARE as f64;
            node.step.is_some() && node.shares.any(|share| share >= least)
        };
        let tested = self.nodes.iter().filter(|node| is_tested(node)).count();
        // Bonferroni's inequality.
        let level = Level::new(FALSE_ALARMS / tested.max(1) as f64);
        for node in self.nodes.iter_mut().filter(|node| is_tested(node)) {
            let means = Mean::of_shares(node.counts.each(), all.each());
            let Some(Sides { a, b }) = means else {
                continue;
            };
            let test = NoiseTest::new(&a.difference(b, &level), a.value);
            node.verdict = match test.score {
                Some(score) if score >= 1.0 => ShareVerdict::Beyond,
                Some(_) => ShareVerdict::Within,
                None => ShareVerdict::Untested,
            };
        }
    }
}

impl DiffNode {
    /// How much greater its share is in B, -1 to 1.
    pub fn change(&self) -> f64 {
        self.shares.b - self.shares.a
    }
}
