//! The store on PostgreSQL passes the conformance suite, with a database for each case.

use store::conformance::CASES;

use crate::databases::Database;

#[tokio::test(flavor = "multi_thread")]
async fn passes_the_conformance_suite() {
    for (name, case) in CASES {
        println!("{name}");
        case(&Database::new()).await;
    }
}
