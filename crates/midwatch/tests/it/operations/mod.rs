//! Running the daemon: start, reload, storage, budgets, freeze, notifications, crashes.

mod budgets;
mod crash;
mod freeze_and_lease;
mod logs;
mod notifications;
mod reload;
mod startup_checks;
mod stop;
mod storage;
mod wrong_clock;
