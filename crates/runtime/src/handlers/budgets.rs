//! Lists the budgets.

use api::{BudgetList, Budgets, Error, Serve};

use crate::commit::caller::Caller;
use crate::engine::Engine;

impl Serve<BudgetList> for Engine {
    async fn serve(&self, _: &Caller, _: BudgetList) -> Result<Budgets, Error> {
        self.budgets.list().await
    }
}
