//! Rows into tables, a page with plots, CSV and Parquet.
