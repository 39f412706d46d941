-- Compacts a day with DuckDB: the many files of a kind of span become one for each host.
--     mkdir -p compact
--     duckdb -c "SET VARIABLE source='DATASET/table=spans/host=*/date=2026-11-20/provider=postgresql/span=query/*.parquet'" \
--            -c "SET VARIABLE target='compact/table=spans'" -c ".read compact.sql"
-- One kind of span at a time: its files have the same columns. For a probe: table=events, probe=NAME, and below probe in place of span.
COPY (
  SELECT * EXCLUDE ("table") FROM read_parquet(getvariable('source'), hive_partitioning = true, hive_types_autocast = false, union_by_name = true)
) TO (getvariable('target')) (
  FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 3, ROW_GROUP_SIZE 1000000,
  PARTITION_BY (host, date, provider, span), OVERWRITE_OR_IGNORE, FILENAME_PATTERN 'day-{i}'
);
