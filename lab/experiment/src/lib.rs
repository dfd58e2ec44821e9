//! A TOML file into runs, and runs into rows and claims.
