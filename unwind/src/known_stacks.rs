//! Stacks that were unwound before: most hits of a busy site have the callers of one of the earlier ones.
//!
//! Stacks that begin with the same registers in the same code are a tree. A node is a place whose value decides: the frame pointer of the hit, or a
//! word of the stack. A branch is a value that one of the stacks had there. So all values that unwinding would use are read and compared each
//! time, and nothing else is.

use std::hash::Hash;

use foldhash::HashMap;
use usdtrec_format::Arch;

use crate::followed::{Followed, FollowedPlace, FollowedValue};
use crate::machine::Machine;
use crate::registers::Registers;
use crate::stack_copy::StackCopy;

/// Words that are kept, about; then all stacks are unwound anew.
const MAX_WORDS: usize = 1 << 19;
/// Words of a node, and of a branch that is not its first.
const NODE_WORDS: usize = 4;

/// What is known of stacks that were unwound before. `K` is what the code of a process is known by, and the limit of frames; `T` is what was found.
pub struct KnownStacks<K, T> {
    machine: &'static Machine,
    roots: HashMap<Root<K>, Branch>,
    nodes: Vec<Node>,
    /// Branches of nodes other than their first ones, by the number of the node and the value.
    others: HashMap<(u32, u64), Branch>,
    found: Vec<T>,
    words: usize,
}

impl<K, T> std::fmt::Debug for KnownStacks<K, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KnownStacks").finish_non_exhaustive()
    }
}

/// What is compared first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Root<K> {
    key: K,
    /// The program counter and the stack pointer.
    hit: [Option<u64>; 2],
    /// Bytes of the copy.
    copied: usize,
}

/// Where a value decides.
#[derive(Clone, Copy, Debug)]
struct Node {
    place: FollowedPlace,
    /// The value of the first branch.
    value: u64,
    first: Branch,
    has_others: bool,
}

/// What follows a value.
#[derive(Clone, Copy, Debug)]
enum Branch {
    /// Another node, which has a larger number.
    Node(u32),
    /// The stack is known: its number.
    Found(u32),
}

/// Where a stack leaves those that are known.
enum Leaves {
    /// It is known.
    Not(u32),
    /// At a node, before this many values.
    Node(u32, usize),
    /// The tree is of other code.
    Tree,
}

impl<K: Copy + Eq + Hash, T> KnownStacks<K, T> {
    /// None are known. `None` if stacks of the architecture are not unwound.
    #[must_use]
    pub fn new(arch: Arch) -> Option<Self> {
        Some(Self {
            machine: Machine::for_arch(arch)?,
            roots: HashMap::default(),
            nodes: Vec::new(),
            others: HashMap::default(),
            found: Vec::new(),
            words: 0,
        })
    }

    fn root(&self, key: K, hit: &Registers, stack: StackCopy<'_>) -> Root<K> {
        Root {
            key,
            hit: [self.machine.ip, self.machine.sp].map(|column| hit.get(column)),
            copied: stack.bytes.len(),
        }
    }

    /// What was found of a stack that has the same callers; `None` if none is known. Hits with one key have the same registers known, and the
    /// same code at all addresses.
    #[must_use]
    pub fn get(&self, key: K, hit: &Registers, stack: StackCopy<'_>) -> Option<&T> {
        let mut branch = *self.roots.get(&self.root(key, hit, stack))?;
        loop {
            let number = match branch {
                Branch::Node(number) => number,
                Branch::Found(number) => return self.found.get(number as usize),
            };
            let node = self.nodes.get(number as usize)?;
            let value = node.place.read(self.machine, hit, stack)?;
            branch = self.branch(number, node, value)?;
        }
    }

    #[inline]
    fn branch(&self, number: u32, node: &Node, value: u64) -> Option<Branch> {
        if node.value == value {
            return Some(node.first);
        }
        let others = node.has_others.then_some(&self.others)?;
        others.get(&(number, value)).copied()
    }

    /// Keeps what was found of a stack, which takes so many words in memory.
    pub fn put(
        &mut self,
        key: K,
        hit: &Registers,
        stack: StackCopy<'_>,
        followed: &Followed,
        (found, words): (T, usize),
    ) {
        let values = followed.values();
        let room = words.saturating_add(NODE_WORDS * (values.len() + 1));
        if self.words.saturating_add(room) > MAX_WORDS {
            self.clear();
        }
        self.words = self.words.saturating_add(room);
        let root = self.root(key, hit, stack);
        let known = self.roots.get(&root);
        match known.map_or(Leaves::Tree, |branch| self.leaves(*branch, values)) {
            Leaves::Not(number) => {
                if let Some(known) = self.found.get_mut(number as usize) {
                    *known = found;
                }
            }
            Leaves::Node(number, at) => {
                let (Some(value), Some(rest)) = (values.get(at), values.get(at + 1..)) else {
                    return;
                };
                let branch = self.append(rest, found);
                self.others.insert((number, value.value), branch);
                if let Some(node) = self.nodes.get_mut(number as usize) {
                    node.has_others = true;
                }
            }
            Leaves::Tree => {
                let branch = self.append(values, found);
                self.roots.insert(root, branch);
            }
        }
    }

    /// Where a stack leaves those that are known.
    fn leaves(&self, mut branch: Branch, values: &[FollowedValue]) -> Leaves {
        for (at, value) in values.iter().enumerate() {
            let Branch::Node(number) = branch else {
                return Leaves::Tree;
            };
            let node = self.nodes.get(number as usize);
            let Some(node) = node.filter(|node| node.place == value.place) else {
                return Leaves::Tree;
            };
            match self.branch(number, node, value.value) {
                Some(next) => branch = next,
                None => return Leaves::Node(number, at),
            }
        }
        match branch {
            Branch::Found(number) => Leaves::Not(number),
            Branch::Node(_) => Leaves::Tree,
        }
    }

    /// Appends a node for each value, and after the last what was found.
    fn append(&mut self, values: &[FollowedValue], found: T) -> Branch {
        // There are fewer than `MAX_WORDS`.
        let number = |len: usize| len as u32;
        let last = Branch::Found(number(self.found.len()));
        self.found.push(found);
        let begin = self.nodes.len();
        let branch = |at: usize| match at < values.len() {
            true => Branch::Node(number(begin + at)),
            false => last,
        };
        let nodes = values.iter().enumerate().map(|(at, value)| Node {
            place: value.place,
            value: value.value,
            first: branch(at + 1),
            has_others: false,
        });
        self.nodes.extend(nodes);
        branch(0)
    }

    fn clear(&mut self) {
        self.roots.clear();
        self.nodes.clear();
        self.others.clear();
        self.found.clear();
        self.words = 0;
    }
}
