#!/usr/bin/env python3
"""Answers the questions of `report` over a folder of hosts, with Spark.

    usdtrec sql --engine spark DATASET >questions.sql
    spark-submit spark_report.py questions.sql [OUT]

Each question is printed as a table. With OUT, a folder or an address, span_stats is written there as Parquet, too: what dashboards need of a day.
"""
import sys

from pyspark.sql import SparkSession


def statements(text):
    """The statements of a file, each with the comment before it. They end with ; at the end of a line."""
    about, lines = [], []
    for line in text.splitlines():
        if line.startswith("-- ") and not lines:
            about.append(line[3:])
        elif line.strip():
            lines.append(line)
            if line.endswith(";"):
                yield " ".join(about), "\n".join(lines)[:-1]
                about, lines = [], []


def main():
    spark = SparkSession.builder.appName("usdtrec").getOrCreate()
    with open(sys.argv[1], encoding="utf-8") as file:
        text = file.read()
    for about, statement in statements(text):
        result = spark.sql(statement)
        if not statement.startswith("CREATE"):
            print(f"\n{about}")
            result.show(20, truncate=60)
    if len(sys.argv) > 2:
        out = spark.table("span_stats").write.mode("overwrite").partitionBy("day")
        out.option("compression", "zstd").parquet(sys.argv[2])
    spark.stop()


main()
