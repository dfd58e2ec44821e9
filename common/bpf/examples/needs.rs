//! What compiled objects need that nobody offers: `needs SERIES FILE...`.

use warmq_bpf::{KernelTable, Object, Offer};

fn main() {
    let mut args = std::env::args().skip(1);
    let kernel = args.next().and_then(|series| KernelTable::of(&series));
    let kernel = kernel.expect("a series that is known: needs 7.3 FILE...");
    for path in args {
        let bytes = std::fs::read(&path).expect("a file");
        match Object::read(&bytes) {
            Err(error) => println!("{path}: {error}"),
            Ok(object) => match object.fit(&kernel, &Offer::default()) {
                Ok(_) => println!("{path}: needs nothing"),
                Err(missing) => {
                    println!(
                        "{path}: {} needs {}",
                        object.name().unwrap_or("?"),
                        missing.len()
                    );
                    missing.iter().for_each(|one| println!("  {one}"));
                }
            },
        }
    }
}
