//! Running the daemon: start, backup, reload, storage, budgets, freeze, notifications, crashes.

mod attention;
mod backup;
mod budgets;
mod crash;
mod freeze_and_lease;
mod lease;
mod logs;
mod notifications;
mod reload;
mod retention;
mod startup_checks;
mod stop;
mod storage;
mod taken_port;
mod wrong_clock;
