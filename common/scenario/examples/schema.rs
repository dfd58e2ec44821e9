//! Writes the JSON schema of scenarios to standard output.

fn main() {
    print!("{}", warmq_scenario::schema());
}
