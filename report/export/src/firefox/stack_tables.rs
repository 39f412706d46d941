//! The tables of stacks that all threads of a profile share: strings, libraries, resources, functions, frames, stacks.

use std::path::Path;
use std::sync::Arc;

use foldhash::HashMap;
use serde_json::{Value as Json, json};
use usdtrec_analysis::stats::keys::stack::{CallStack, FrameName};
use usdtrec_analysis::stats::keys::stacks::Stacks;
use usdtrec_trace::process::{Dso, DsoId};
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::unwind::stack::StackPart;
use usdtrec_view::frames::{cut_text, frame_text};
use usdtrec_view::text::buffer::Text;

use crate::firefox::json_table::{put_list, put_table};
use crate::firefox::libraries::{file_name, library};
use crate::frame_file::path_text;
use crate::interned::Interned;

/// `ResourceType` of libraries.
const LIBRARY: u32 = 1;

/// Stacks by number, with what they are made of.
#[derive(Default)]
pub(crate) struct StackTables {
    pub(crate) strings: Interned<String>,
    libraries: Interned<DsoId>,
    sources: Interned<u32>,
    functions: Interned<Function>,
    frames: Interned<Frame>,
    nodes: Interned<Node>,
    stacks: HashMap<Box<[StackPart]>, Option<u32>>,
    names: Stacks,
}

/// A function. Numbers are indices of the other tables.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Function {
    name: u32,
    /// The library that it is in, which is its resource, too.
    library: Option<u32>,
    source: Option<u32>,
}

/// A frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Frame {
    function: u32,
    /// How many calls were inlined into the function that contains it; 0 for that one.
    depth: u32,
}

/// A frame and its callers.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Node {
    caller: Option<u32>,
    frame: u32,
}

impl StackTables {
    /// The number of a stack; `None` for one without frames.
    pub(crate) fn stack(&mut self, stack: &[StackPart], session: &TraceSession) -> Option<u32> {
        if let Some(known) = self.stacks.get(stack) {
            return *known;
        }
        let CallStack { frames, cut } = self.names.names(stack, session);
        let mut caller = None;
        if let Some(cut) = &cut {
            let frame = Frame {
                function: self.function(cut_text(cut), None, None),
                depth: 0,
            };
            caller = Some(self.node(caller, frame));
        }
        let files = stack.iter().filter_map(|part| match part {
            StackPart::Function { file, .. } | StackPart::Offset { file, .. } => Some(Some(*file)),
            StackPart::Made { .. } | StackPart::Address(_) => Some(None),
            StackPart::Cut(_) => None,
        });
        let files: Vec<Option<DsoId>> = files.collect();
        let mut depth = 0;
        for (name, file) in frames.iter().zip(files).rev() {
            let inlined = matches!(name, FrameName::Function { inlined: true, .. });
            depth = if inlined { depth + 1 } else { 0 };
            let function = self.function_of(name, file);
            caller = Some(self.node(caller, Frame { function, depth }));
        }
        self.stacks.insert(stack.into(), caller);
        caller
    }

    fn node(&mut self, caller: Option<u32>, frame: Frame) -> u32 {
        let frame = self.frames.number(frame);
        self.nodes.number(Node { caller, frame })
    }

    fn function_of(&mut self, name: &FrameName, file: Option<DsoId>) -> u32 {
        let text = match name {
            // That it is inlined is said by the depth.
            FrameName::Function { name, .. } | FrameName::Script { name, .. } => name.to_string(),
            other => frame_text(other),
        };
        let library = file.map(|file| self.libraries.number(file));
        let source = match name {
            FrameName::Script {
                file: Some(file), ..
            } => Some(self.source(file)),
            _ => None,
        };
        self.function(text, library, source)
    }

    fn source(&mut self, file: &Arc<Path>) -> u32 {
        let name = self.strings.number(path_text(file).into_owned());
        self.sources.number(name)
    }

    fn function(&mut self, name: String, library: Option<u32>, source: Option<u32>) -> u32 {
        let name = self.strings.number(name);
        self.functions.number(Function {
            name,
            library,
            source,
        })
    }

    /// The files that frames are in.
    fn files<'s>(&self, session: &'s TraceSession) -> impl Iterator<Item = &'s Dso> {
        let files = self.libraries.all().iter();
        files.filter_map(|file| session.mappings().file(*file))
    }

    /// Appends the members `libs` and `shared`.
    pub(crate) fn put(&mut self, session: &TraceSession, out: &mut Text) {
        let machine = &session.info().machine;
        out.string("\"libs\":");
        put_list(self.files(session).map(|file| library(file, machine)), out);
        let names: Vec<String> = self.files(session).map(file_name).collect();
        let names = names.into_iter().map(|name| self.strings.number(name));
        let resources: Vec<(u32, u32)> = (0..).zip(names).collect();
        out.string(",\n\"shared\":{\"stringArray\":");
        put_list(self.strings.all().iter().map(|text| json!(text)), out);
        put_table(
            "sources",
            self.sources.all(),
            &[("id", |_| Json::Null), ("filename", |name| json!(name))],
            out,
        );
        put_table(
            "resourceTable",
            &resources,
            &[
                ("type", |_| LIBRARY.into()),
                ("lib", |(library, _)| json!(library)),
                ("name", |(_, name)| json!(name)),
                ("host", |_| Json::Null),
            ],
            out,
        );
        put_table::<()>(
            "nativeSymbols",
            &[],
            &[
                ("libIndex", |()| Json::Null),
                ("address", |()| Json::Null),
                ("name", |()| Json::Null),
                ("functionSize", |()| Json::Null),
            ],
            out,
        );
        self.put_functions(out);
        self.put_frames(out);
        put_table(
            "stackTable",
            self.nodes.all(),
            &[
                ("frame", |node| node.frame.into()),
                ("prefix", |node| node.caller.into()),
            ],
            out,
        );
        out.byte(b'}');
    }

    fn put_functions(&self, out: &mut Text) {
        put_table(
            "funcTable",
            self.functions.all(),
            &[
                ("name", |one| one.name.into()),
                ("isJS", |_| false.into()),
                ("relevantForJS", |_| false.into()),
                ("resource", |one| {
                    one.library.map_or_else(|| (-1).into(), Json::from)
                }),
                ("source", |one| one.source.into()),
                ("lineNumber", |_| Json::Null),
                ("columnNumber", |_| Json::Null),
            ],
            out,
        );
    }

    fn put_frames(&self, out: &mut Text) {
        put_table(
            "frameTable",
            self.frames.all(),
            &[
                ("address", |_| (-1).into()),
                ("inlineDepth", |one| one.depth.into()),
                ("func", |one| one.function.into()),
                ("innerWindowID", |_| 0.into()),
                ("category", |_| Json::Null),
                ("subcategory", |_| Json::Null),
                ("nativeSymbol", |_| Json::Null),
                ("line", |_| Json::Null),
                ("column", |_| Json::Null),
            ],
            out,
        );
    }
}
