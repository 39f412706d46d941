//! The tables in documents that the table of fields says.

use std::path::Path;

use usdtrec_format::TimePart;
use usdtrec_report::export::DatasetTable;
use usdtrec_report::fields::{
    BEGIN, END, FIELDS, Field, FieldSpec, FieldValues, Fields, SPAN, SPAN_FIELDS, SPAN_NS,
};
use usdtrec_report::script::TimeOrigin;
use usdtrec_testing::{compare_section, test};

const MEMBERS: &str = "| Member | Type | Null or absent | Meaning |\n|---|---|---|---|\n";
const COLUMNS: &str = "| column | type | meaning |\n|---|---|---|\n";

fn row(cells: &[&str]) -> String {
    format!("| {} |\n", cells.join(" | ")).replace("|  |", "| |")
}

fn list<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let quoted: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

fn events() -> String {
    let rows = FIELDS.iter().map(|spec| {
        let is_usual = Fields::DATA.has(spec.field);
        let lacking = match (is_usual, spec.lacking) {
            (true, lacking) => lacking.to_owned(),
            (false, "") => "absent unless requested with `-F`".to_owned(),
            (false, lacking) => format!("absent unless requested with `-F`; {lacking}"),
        };
        row(&[&list([spec.column]), spec.json, &lacking, spec.meaning])
    });
    MEMBERS.to_owned() + &rows.collect::<String>()
}

fn event_columns() -> String {
    let since = [TimeOrigin::First, TimeOrigin::Previous].map(TimeOrigin::name);
    let fields = FIELDS
        .iter()
        .filter(|spec| !matches!(spec.values, FieldValues::Several))
        .flat_map(|spec| {
            let since = since.iter().flatten().copied();
            let since = since.filter(|_| spec.field == Field::Time);
            [spec.column].into_iter().chain(since)
        });
    let parts = TimePart::ALL.iter().map(|part| part.spec().column);
    let columns = list(
        fields
            .chain(["NAME", "missing", SPAN, SPAN_NS])
            .chain(parts),
    );
    format!("CSV columns: {columns}\n")
}

/// The fields of the events of a span.
fn of_sides() -> impl Iterator<Item = &'static FieldSpec> {
    let is_of_sides = |spec: &&FieldSpec| Fields::OF_SIDES.has(spec.field);
    FIELDS.iter().filter(is_of_sides)
}

fn spans() -> String {
    let own = SPAN_FIELDS.iter().filter_map(|spec| {
        let name = list([spec.member?]);
        Some(row(&[&name, spec.json, spec.lacking, spec.meaning]))
    });
    let of_sides = of_sides().map(|spec| {
        let names = [BEGIN, END].map(|side| format!("`{side}.{}`", spec.column));
        row(&[&names.join(", "), spec.json, spec.lacking, spec.meaning])
    });
    MEMBERS.to_owned() + &own.chain(of_sides).collect::<String>()
}

fn span_columns() -> String {
    let own = SPAN_FIELDS.iter().filter(|spec| spec.json != "object");
    let own = own.filter_map(|spec| Some(spec.member?.to_owned()));
    let of_sides = [BEGIN, END].into_iter().flat_map(|side| {
        of_sides().map(move |spec| match spec.field {
            Field::Args => format!("{side}.args.NAME"),
            _ => format!("{side}.{}", spec.column),
        })
    });
    let columns: Vec<String> = own.chain(of_sides).chain(["missing".to_owned()]).collect();
    format!(
        "CSV columns: {}\n",
        list(columns.iter().map(String::as_str))
    )
}

/// The columns of a table that are fields, of each of which the column, what it is, and when it is null are given.
fn dataset(table: &DatasetTable, fields: impl Iterator<Item = [&'static str; 3]>) -> String {
    let fields: Vec<_> = fields.collect();
    let rows = table.columns().into_iter().filter_map(|(name, kind)| {
        let [_, meaning, lacking] = fields.iter().find(|field| field[0] == name)?;
        let meaning = match lacking.starts_with("null") {
            true => format!("{meaning}; {lacking}"),
            false => (*meaning).to_owned(),
        };
        Some(row(&[&list([name]), kind.name(), &meaning]))
    });
    COLUMNS.to_owned() + &rows.collect::<String>()
}

#[test]
fn tables_of_documents_are_current() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let members = root.join("FIELDS.md");
    compare_section(&members, "fields of events", &events());
    compare_section(&members, "columns of events", &event_columns());
    compare_section(&members, "fields of spans", &spans());
    compare_section(&members, "columns of spans", &span_columns());
    let of_events = FIELDS.iter().map(|spec| {
        let column = match spec.values {
            FieldValues::Process(of_process) => of_process.column,
            _ => spec.column,
        };
        [column, spec.meaning, spec.lacking]
    });
    let of_spans = SPAN_FIELDS
        .iter()
        .map(|spec| [spec.name, spec.meaning, spec.lacking]);
    let of_events = dataset(&DatasetTable::EVENTS, of_events);
    let of_spans = dataset(&DatasetTable::SPANS, of_spans);
    let columns = root.join("../docs/parquet.md");
    compare_section(&columns, "fields of events", &of_events);
    compare_section(&columns, "fields of spans", &of_spans);
}
