//! Arguments that events get besides their own.

use clap::Args;
use usdtrec_report::ContextQuestion;

/// Arguments that events get besides their own.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct WithArgs {
    /// Give each event the arguments of this span that it is in, as SPAN.ARG: a name, with globs, or START..DONE (comma list, may be repeated)
    ///
    /// An event is in the newest span of its thread that has begun and not ended; the event that ends a span is in it. Where spans overlap on one thread, by an id, events between are in
    /// none that is known while several are open. --with query gives all events query.query, the statement:
    /// for --sort, --by, --filter, -F args.query.query and templates. A span has those of the event that begins it: report --span lock__wait --with query --by query.query:shape.
    #[arg(long, value_name = "SPAN", value_delimiter = ',')]
    pub(crate) with: Vec<String>,
    /// Give each event that ends a wait for a lock who held it meanwhile: holder.comm, holder.tid, holder.blocked and holder.held (ns), holder.others
    ///
    /// The holder is the thread that held the lock for the longest part of the wait. With --with query, holder.query.query is the statement that it was in. Where an argument says a group of
    /// locks, as PostgreSQL's tranches, those who had one of them are candidate.comm, and so on. Schemas say which probes wait for, acquire and release a lock: those of glibc's mutexes, of Java's monitors
    /// and of PostgreSQL's lightweight locks do. report --span groups by holder.comm and holder.tid unless --by is given.
    #[arg(long)]
    pub(crate) holders: bool,
}

/// Keys by which spans are grouped if nothing is said: those of a lock, and those of a group of locks.
pub(crate) const HOLDER_KEYS: [[&str; 2]; 2] = [
    ["holder.comm", "holder.tid"],
    ["candidate.comm", "candidate.tid"],
];

impl WithArgs {
    /// Which arguments events get besides their own.
    pub(crate) fn context(&self) -> ContextQuestion {
        ContextQuestion {
            with: self.with.clone(),
            holders: self.holders,
        }
    }

    /// The first of these options of whose arguments none is named in some texts: keys, expressions.
    pub(crate) fn unused<'t>(
        &self,
        texts: impl Iterator<Item = &'t str> + Clone,
    ) -> Option<String> {
        let is_unused = |span: &&String| {
            let prefix = prefix(span);
            !texts.clone().any(|text| text.contains(&prefix))
        };
        if let Some(span) = self.with.iter().find(is_unused) {
            return Some(format!("--with {span}"));
        }
        let is_unused = self.holders && !texts.clone().any(names_holder);
        is_unused.then(|| "--holders".to_owned())
    }

    /// Whether an expression names any of these arguments.
    #[cfg(feature = "record")]
    pub(crate) fn are_named_in(&self, text: &str) -> bool {
        let mut spans = self.with.iter();
        spans.any(|span| text.contains(&prefix(span))) || self.holders && names_holder(text)
    }
}

/// What the names of a span's arguments begin with.
fn prefix(span: &str) -> String {
    let start = span.split_once("..").map_or(span, |(start, _)| start);
    let bare = start.rsplit_once(':').map_or(start, |(_, bare)| bare);
    // A glob may be any span.
    match bare.contains(['*', '?', '[']) {
        true => ".".to_owned(),
        false => format!("{bare}."),
    }
}

fn names_holder(text: &str) -> bool {
    text.contains("holder.") || text.contains("candidate.")
}
