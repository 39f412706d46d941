#!/bin/sh
# Answers the questions of `report` over a folder of hosts, with DuckDB's program.
#     duckdb_report.sh DATASET
set -eu
usdtrec sql --engine duckdb "$1" | duckdb
