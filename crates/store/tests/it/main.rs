//! The in-memory store under the suite that every store must pass.

use std::sync::Arc;

use store::conformance::{CASES, Place};
use store::{Memory, Store};

/// Memory is its own place: opening it again finds the same.
struct InMemory(Arc<Memory>);

impl Place for InMemory {
    fn open(&self) -> Arc<dyn Store> {
        self.0.clone()
    }
}

#[tokio::test]
async fn conforms() {
    for (name, case) in CASES {
        println!("{name}");
        case(&InMemory(Arc::new(Memory::new()))).await;
    }
}
