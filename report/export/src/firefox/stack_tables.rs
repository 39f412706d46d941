//! The tables of stacks that all threads of a profile share: strings, libraries, resources, functions, frames, stacks.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use foldhash::HashMap;
use usdtrec_analysis::stats::keys::stack::{CallStack, FrameName};
use usdtrec_analysis::stats::keys::stacks::Stacks;
use usdtrec_trace::process::DsoId;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::unwind::stack::StackPart;
use usdtrec_view::frames::{cut_text, frame_text};
use usdtrec_view::text::buffer::Text;

use crate::firefox::json_table::{put_column, put_list};
use crate::firefox::libraries::Libraries;
use crate::frame_file::path_text;
use crate::interned::Interned;

/// `ResourceType` of libraries.
const LIBRARY: u32 = 1;

/// Stacks by number, with what they are made of.
#[derive(Default)]
pub(crate) struct StackTables {
    pub(crate) strings: Interned<String>,
    pub(crate) libraries: Libraries,
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
            let function = self.function_of(name, file, session);
            caller = Some(self.node(caller, Frame { function, depth }));
        }
        self.stacks.insert(stack.into(), caller);
        caller
    }

    fn node(&mut self, caller: Option<u32>, frame: Frame) -> u32 {
        let frame = self.frames.number(frame);
        self.nodes.number(Node { caller, frame })
    }

    fn function_of(
        &mut self,
        name: &FrameName,
        file: Option<DsoId>,
        session: &TraceSession,
    ) -> u32 {
        let text = match name {
            // That it is inlined is said by the depth.
            FrameName::Function { name, .. } | FrameName::Script { name, .. } => name.to_string(),
            other => frame_text(other),
        };
        let library = file.map(|file| self.libraries.number(file, session));
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

    /// Writes the member `shared`.
    pub(crate) fn write(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let names = self.libraries.names();
        let names: Vec<u32> = names.map(|name| self.strings.number(name)).collect();
        let mut text = Text::default();
        text.string("\"shared\":{\"stringArray\":");
        put_list(self.strings.all(), &mut text, |string, text| {
            text.json_string(string);
        });
        text.string(",\n\"sources\":{\"length\":");
        text.unsigned(self.sources.len() as u64);
        put_column("id", self.sources.all(), &mut text, |_| None);
        put_column("filename", self.sources.all(), &mut text, |name| {
            Some(*name)
        });
        text.string("},\n\"resourceTable\":{\"length\":");
        text.unsigned(names.len() as u64);
        put_column("type", &names, &mut text, |_| Some(LIBRARY));
        let libraries: Vec<u32> = (0..).take(names.len()).collect();
        put_column("lib", &libraries, &mut text, |library| Some(*library));
        put_column("name", &names, &mut text, |name| Some(*name));
        put_column("host", &names, &mut text, |_| None);
        text.string("},\n\"nativeSymbols\":{\"length\":0,\"libIndex\":[],\"address\":[],\"name\":[],\"functionSize\":[]},\n");
        self.put_functions(&mut text);
        self.put_frames(&mut text);
        text.string("\"stackTable\":{\"length\":");
        text.unsigned(self.nodes.len() as u64);
        let nodes = self.nodes.all();
        put_column("frame", nodes, &mut text, |node| Some(node.frame));
        put_column("prefix", nodes, &mut text, |node| node.caller);
        text.string("}}");
        out.write_all(text.as_slice())
    }

    fn put_functions(&self, text: &mut Text) {
        let functions = self.functions.all();
        text.string("\"funcTable\":{\"length\":");
        text.unsigned(functions.len() as u64);
        put_column("name", functions, text, |one| Some(one.name));
        for name in ["isJS", "relevantForJS"] {
            text.string(",\"");
            text.string(name);
            text.string("\":");
            put_list(functions, text, |_, text| text.fixed(b"false"));
        }
        text.string(",\"resource\":");
        put_list(functions, text, |one, text| match one.library {
            Some(library) => text.unsigned(library.into()),
            None => text.fixed(b"-1"),
        });
        put_column("source", functions, text, |one| one.source);
        for name in ["lineNumber", "columnNumber"] {
            put_column(name, functions, text, |_| None);
        }
        text.string("},\n");
    }

    fn put_frames(&self, text: &mut Text) {
        let frames = self.frames.all();
        text.string("\"frameTable\":{\"length\":");
        text.unsigned(frames.len() as u64);
        text.string(",\"address\":");
        put_list(frames, text, |_, text| text.fixed(b"-1"));
        put_column("inlineDepth", frames, text, |one| Some(one.depth));
        put_column("func", frames, text, |one| Some(one.function));
        put_column("innerWindowID", frames, text, |_| Some(0));
        for name in ["category", "subcategory", "nativeSymbol", "line", "column"] {
            put_column(name, frames, text, |_| None);
        }
        text.string("},\n");
    }
}
