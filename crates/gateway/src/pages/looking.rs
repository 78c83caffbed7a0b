//! The handle of a page, which can only look.

use std::sync::Arc;

use api::{Call, Code, Error, Handle, Response, ToolReport};
use futures::future::{BoxFuture, FutureExt, ready};

/// Refuses every request that may change something.
#[derive(Debug)]
pub(super) struct LookingHandle(pub(super) Arc<dyn Handle>);

impl Handle for LookingHandle {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Response, Error>> {
        if call.request.changes() {
            return ready(Err(refused())).boxed();
        }
        self.0.call(call)
    }

    fn report(&self, _: ToolReport) -> BoxFuture<'_, Result<(), Error>> {
        ready(Err(refused())).boxed()
    }
}

fn refused() -> Error {
    Error::new(Code::Denied, "a cookie allows looking and no change")
        .hint("send the form of the page, which proves that the page is ours")
}

#[cfg(test)]
mod tests {
    use api::{Freeze, ScheduleAdd, StatusShow};
    use futures::FutureExt;

    use super::*;
    use crate::test_support::AcceptAll;

    #[test]
    fn changes_are_refused_and_looks_are_passed_on() {
        let handle = LookingHandle(Arc::new(AcceptAll));
        // The handle behind it never answers.
        let code = |call| handle.call(call).now_or_never().map(|it| it.unwrap_err().code);
        assert_eq!(code(Call::new(StatusShow::default())), None);
        assert_eq!(code(Call::new(Freeze::default())), Some(Code::Denied));
        let add = |dry_run| Call::new(ScheduleAdd { dry_run, ..ScheduleAdd::default() });
        assert_eq!(code(add(true)), None);
        assert_eq!(code(add(false)), Some(Code::Denied));
    }
}
