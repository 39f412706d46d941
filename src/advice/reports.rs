//! Advice about questions that a trace cannot answer.

use std::io;
use std::path::Path;

use usdtrec_format::trace::ReadError;
use usdtrec_report::{FieldError, QuestionError, ReportError};

use crate::shell::{self, word};

pub(super) fn for_report(error: &ReportError) -> Option<String> {
    match error {
        ReportError::Question(error) | ReportError::QuestionOfOne { error, .. } => {
            for_question(error)
        }
        ReportError::Read(ReadError::Open { path, source })
            if source.kind() == io::ErrorKind::PermissionDenied =>
        {
            Some(for_unreadable(path))
        }
        _ => None,
    }
}

/// A trace that this user may not read: recorders run as root.
fn for_unreadable(path: &Path) -> String {
    let path = shell::path(path);
    format!("run this command with sudo, or make the trace yours: sudo chown \"$USER\" {path}")
}

fn for_question(error: &QuestionError) -> Option<String> {
    let advice = match error {
        QuestionError::HistogramOfKey { name } => {
            return Some(format!("--sort {} counts by it", word(name)));
        }
        QuestionError::HeatMapOfKey { .. } => "--rate shows events over time",
        QuestionError::TooManyIntervals { .. } => {
            "choose a longer interval, or a part of the trace with --time"
        }
        QuestionError::FilterReadsMemory { .. } => {
            "filter while recording: record --filter, or record an argument: record -e 'EVENT(NAME=EXPRESSION)'"
        }
        QuestionError::SpanInTemplate => {
            "spans are shown by: script -F +span, script --span NAME, report --span"
        }
        QuestionError::NoLocks { .. } => {
            "record all of them, such as -e 'libc:mutex_*', -e 'hotspot:monitor__contended__*' or -e 'postgresql:lwlock__*'; for own probes, write waits, acquires and releases into a schema file"
        }
        QuestionError::NoStacks { .. } => {
            "record with: usdtrec record -g, or perf record --call-graph dwarf"
        }
        QuestionError::NotOfProcess {
            what: "trace_id" | "span_id",
            ..
        } => "record with: usdtrec record --thread-context",
        QuestionError::NotOfProcess {
            what: "oncpu" | "runnable" | "iowait" | "blocked",
            ..
        } => "record with: usdtrec record --off-cpu",
        QuestionError::NoScriptCalls { .. } => {
            "record the probes at which functions are called and return: record -e 'php:function__*', 'python:function__*', 'ruby:*method__*' or \
             'hotspot:method__*'"
        }
        QuestionError::TimesBesideSpans => {
            "leave out what selects events: -e, --time, --comm, --pid, --tid, --cpu, --filter"
        }
        QuestionError::NoTimeOfDay | QuestionError::NoDays => {
            "record with usdtrec, or with: perf record -k CLOCK_MONOTONIC"
        }
        _ => return None,
    };
    Some(advice.to_owned())
}

/// An error in `-F`, with its advice in the same line.
pub(crate) fn for_field(error: &FieldError) -> String {
    match error {
        FieldError::OfOneKind(_) => format!("{error}, and choose events by -e"),
        _ => error.to_string(),
    }
}
