//! The suite that every store runs, on a database for each case.

use store::conformance::CASES;

use crate::places::Database;

#[tokio::test(flavor = "multi_thread")]
async fn conforms() {
    for (name, case) in CASES {
        println!("{name}");
        case(&Database::new()).await;
    }
}
