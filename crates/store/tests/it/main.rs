//! The in-memory store passes the conformance suite.

use std::sync::Arc;

use store::conformance::{CASES, StoreFixture};
use store::{Memory, Store};

/// Opening it again returns the same store.
struct InMemory(Arc<Memory>);

impl StoreFixture for InMemory {
    fn open(&self) -> Arc<dyn Store> {
        self.0.clone()
    }
}

#[tokio::test]
async fn passes_the_conformance_suite() {
    for (name, case) in CASES {
        println!("{name}");
        case(&InMemory(Arc::new(Memory::new()))).await;
    }
}
