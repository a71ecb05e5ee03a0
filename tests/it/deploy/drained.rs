//! One replica is stopped under load, and one is killed.

use std::time::Duration;

use super::{
    Balancer, Kind, Load, Replica, engine,
    load::{CALLERS, faults, lost},
};

async fn a_stop_loses_nothing_and_a_kill_repeats_nothing(kind: Kind) {
    let engine = engine(Duration::from_millis(100)).await;
    let (a, b) = (Replica::before(&engine).await, Replica::before(&engine).await);
    let Some(balancer) = Balancer::before(kind, [&a, &b], "a stop and a kill behind a balancer").await else { return };

    let load = Load::start("stop", &balancer.url).await;
    a.is_used().await;
    b.is_used().await;
    balancer.before_stop(&a);
    let port = a.port;
    assert!(a.stop().await.success());
    tokio::time::sleep(Duration::from_millis(300)).await;
    let calls = load.stop().await;
    println!("{kind:?}: a stop, {} calls, {} lost", calls.len(), lost(&calls).len());
    assert_eq!(lost(&calls), [""; 0]);
    assert_eq!(faults(&calls, &engine), [""; 0]);

    let a = Replica::at(port, &engine).await;
    balancer.after_start();
    let load = Load::start("kill", &balancer.url).await;
    a.is_used().await;
    b.kill();
    tokio::time::sleep(Duration::from_millis(2500)).await;
    let calls = load.stop().await;
    println!("{kind:?}: a kill, {} calls, {} lost", calls.len(), lost(&calls).len());
    // What was under way there, and not much of what came after.
    assert!((1..=4 * CALLERS).contains(&lost(&calls).len()), "{:?}", lost(&calls));
    assert_eq!(faults(&calls, &engine), [""; 0]);

    let load = Load::start("after", &balancer.url).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let calls = load.stop().await;
    println!("{kind:?}: after that, {} calls, {} lost", calls.len(), lost(&calls).len());
    assert_eq!(lost(&calls), [""; 0]);
    assert_eq!(faults(&calls, &engine), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_nginx() {
    a_stop_loses_nothing_and_a_kill_repeats_nothing(Kind::Nginx).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_haproxy() {
    a_stop_loses_nothing_and_a_kill_repeats_nothing(Kind::HaProxy).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_envoy() {
    a_stop_loses_nothing_and_a_kill_repeats_nothing(Kind::Envoy).await;
}
