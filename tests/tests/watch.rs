//! Watch windows: what they confirm, what they cost, whom they leave alone, and that nothing of them stays.

use std::{
    path::Path,
    thread,
    time::{Duration, Instant},
};

use cohtrace_tests::{
    answer::Variant::{self, Padded, Plain},
    breakpoint::{self, Breakpoint, Trigger},
    debuggee,
    live::{GRACE, RUN_MS, Subject, ready_to_watch},
    report::{Report, Watch},
    tool::{Ended, Running, cohtrace, run},
};

/// How long something may take that is only a matter of the machine's speed.
const LIMIT: Duration = Duration::from_secs(40);

fn subject(name: &str, variant: Variant) -> Subject {
    Subject::new(name, variant).unwrap_or_else(|error| panic!("{error:#}"))
}

fn free() -> usize {
    breakpoint::free().unwrap_or_else(|error| panic!("{error:#}"))
}

/// Waits until the number of free breakpoints is as wished.
fn wait_for_free(wish: &str, is_met: impl Fn(usize) -> bool) {
    let deadline = Instant::now() + LIMIT;
    loop {
        // Counting takes all that are free for a moment, in which the tool would find none: seldom enough.
        thread::sleep(Duration::from_millis(200));
        let now = free();
        if is_met(now) {
            return;
        }
        assert!(
            Instant::now() < deadline,
            "{now} breakpoints are free; {wish}"
        );
    }
}

/// Runs the tool for 2 s on a program, with further arguments.
fn attach(arguments: &[&str], subject: &Subject) -> Ended {
    let mut attach = cohtrace(["attach", "--json", "--duration", "2"]);
    attach
        .args(arguments)
        .arg("--")
        .arg(&subject.program.path)
        .arg(RUN_MS.to_string());
    run(&mut attach, Duration::from_millis(RUN_MS) + GRACE)
}

fn report(ended: &Ended) -> Report {
    Report::parse(&ended.stdout).unwrap_or_else(|error| panic!("{error:#}\n{}", ended.said()))
}

fn watch_of(ended: &Ended) -> Watch {
    let report = report(ended);
    report
        .watch
        .unwrap_or_else(|| panic!("the run did not watch\n{}", ended.said()))
}

#[test]
fn a_run_watches_unless_told_otherwise_and_says_what_it_saw() {
    let Some(_turn) = ready_to_watch() else {
        return;
    };
    let subject = subject("two_counters", Plain);
    let ended = attach(&[], &subject).expect_code(0);
    subject.judge(&ended).expect("confirmed, and nothing else");
    let watch = watch_of(&ended);
    assert!(watch.windows > 0 && watch.hits > 0, "{watch:?}");
    let report = report(&ended);
    let finding = &report.findings[0];
    assert!(
        finding.handoffs.is_some_and(|moves| moves.observed > 0),
        "a line that two threads fight over did not move: {finding:?}"
    );
    let trapped: u64 = finding.accesses.iter().filter_map(|a| a.trapped).sum();
    assert!(trapped > 0, "none of {} hits is an access", watch.hits);
    assert!(
        trapped <= watch.hits,
        "{trapped} of {} hits: more accesses than breakpoints were hit",
        watch.hits
    );
}

#[test]
fn without_windows_findings_are_sampled_and_there_are_no_pairs() {
    let Some(_turn) = ready_to_watch() else {
        return;
    };
    for name in ["two_counters", "get_set"] {
        let subject = subject(name, Plain);
        let ended = attach(&["--no-watch"], &subject).expect_code(0);
        subject.judge(&ended).expect("found without windows");
        let report = report(&ended);
        assert_eq!(report.watch, None);
        assert!(report.pairs.is_empty(), "{:?}", report.pairs);
        for finding in &report.findings {
            assert_eq!(finding.confidence, "sampled");
            assert_eq!(finding.handoffs, None);
            let mut trapped = finding.accesses.iter().filter_map(|a| a.trapped);
            assert!(trapped.all(|n| n == 0), "{finding:?}");
        }
    }
}

#[test]
fn a_variable_is_watched_when_asked_for_though_nothing_is_wrong_with_it() {
    let Some(_turn) = ready_to_watch() else {
        return;
    };
    let subject = subject("two_counters", Padded);
    let ended = attach(&["--watch", "counters.hits"], &subject).expect_code(0);
    subject
        .judge(&ended)
        .expect("a watched line of one thread is no finding");
    assert!(watch_of(&ended).hits > 0, "{}", ended.said());
}

#[test]
fn a_variable_that_is_not_there_cannot_be_watched() {
    let Some(_turn) = ready_to_watch() else {
        return;
    };
    let subject = subject("two_counters", Plain);
    for wrong in ["no_such_counters", "counters.no_such_field"] {
        let ended = attach(&["--watch", wrong], &subject).expect_code(2);
        assert!(ended.stderr.contains(wrong), "{}", ended.said());
    }
}

#[test]
fn a_larger_budget_buys_more_and_none_is_overdrawn() {
    let Some(_turn) = ready_to_watch() else {
        return;
    };
    let subject = subject("two_counters", Plain);
    let [small, large] = ["1", "10"].map(|percent| {
        let arguments = ["--watch", "counters", "--overhead", percent];
        watch_of(&attach(&arguments, &subject).expect_code(0))
    });
    assert!(large.hits > 2 * small.hits, "{small:?}\n{large:?}");
    for watch in [small, large] {
        let (Some(spent), Some(budget)) = (watch.spent_share, watch.budget_share) else {
            panic!("what was spent is not known: {watch:?}");
        };
        // A window that is open is not cut in the middle of a hit, hence not to the letter.
        assert!(spent <= 2.0 * budget, "{watch:?}");
    }
}

#[test]
fn sigkill_in_the_middle_of_watching_leaves_no_breakpoint() {
    let Some(_turn) = ready_to_watch() else {
        return;
    };
    let before = free();
    let subject = subject("two_counters", Plain);
    let mut target = Running::start(&mut subject.command(120_000)).expect("it starts");
    let pid = target.pid().to_string();
    let mut attach = cohtrace(["attach", "--json", "--overhead", "20", "-p", &pid]);
    let tool = Running::start(&mut attach).expect("cohtrace starts");
    wait_for_free("the tool takes none", |now| now < before);
    tool.signal(libc::SIGKILL);
    tool.wait(Duration::from_secs(10)).expect("it was killed");
    wait_for_free("they were not given back", |now| now == before);
    assert!(target.is_running(), "the target died with the tool");
}

#[test]
fn without_windows_no_breakpoint_is_taken() {
    let Some(_turn) = ready_to_watch() else {
        return;
    };
    let before = free();
    let subject = subject("two_counters", Plain);
    let mut target = cohtrace(["attach", "--json", "--no-watch", "--duration", "2", "--"]);
    target.arg(&subject.program.path).arg(RUN_MS.to_string());
    let mut tool = Running::start(&mut target).expect("cohtrace starts");
    while tool.is_running() {
        assert_eq!(free(), before, "a run without windows holds breakpoints");
        thread::sleep(Duration::from_millis(5));
    }
    tool.wait(GRACE).expect("it has ended").expect_code(0);
}

#[test]
fn a_program_that_ends_at_once_gives_a_report_and_leaves_no_breakpoint() {
    let Some(_turn) = ready_to_watch() else {
        return;
    };
    let before = free();
    let subject = subject("two_counters", Plain);
    for (program, argument) in [
        (Path::new("/bin/true"), ""),
        (&subject.program.path, "1"),
        (&subject.program.path, "60"),
    ] {
        let mut attach = cohtrace(["attach", "--json", "--"]);
        let ended = run(attach.arg(program).arg(argument), GRACE).expect_code(0);
        report(&ended);
        wait_for_free("they were not given back", |now| now == before);
    }
}

/// Stops a process and waits until it has; a stopped one has done each store that it began, and counted it.
fn stop(target: &Running) {
    target.signal(libc::SIGSTOP);
    let deadline = Instant::now() + LIMIT;
    let is_stopped = |tid: u32| {
        let path = format!("/proc/{}/task/{tid}/stat", target.pid());
        let stat = std::fs::read_to_string(path).expect("it runs");
        stat.rsplit(')')
            .next()
            .is_some_and(|rest| rest.starts_with(" T"))
    };
    let threads = debuggee::threads(target.pid()).expect("it runs");
    while !threads.iter().all(|(tid, _)| is_stopped(*tid)) {
        assert!(Instant::now() < deadline, "it does not stop");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_debuggers_breakpoints_count_on_exactly_and_windows_use_what_is_left() {
    const HELD: usize = 2;
    let Some(_turn) = ready_to_watch() else {
        return;
    };
    let before = free();
    assert!(
        before > HELD,
        "{before} breakpoints: a debugger leaves none"
    );
    let subject = subject("lap_counter", Plain);
    let program = &subject.program.path;
    let target = Running::start(&mut subject.command(120_000)).expect("it starts");
    let deadline = Instant::now() + LIMIT;
    let named = loop {
        let threads = debuggee::threads(target.pid()).expect("it runs");
        let named = ["inner", "outer"].map(|name| threads.iter().find(|(_, comm)| comm == name));
        if let [Some((inner, _)), Some((outer, _))] = named {
            break [*inner, *outer];
        }
        assert!(Instant::now() < deadline, "no threads: {threads:?}");
        thread::sleep(Duration::from_millis(5));
    };
    stop(&target);
    let laps = debuggee::address_of(program, target.pid(), "laps").expect("it is a global");
    let laps = [laps, laps + 128];
    let read = |addr| debuggee::read_word(target.pid(), addr).expect("it is mapped");
    // Both words on both threads, as a debugger does that does not know who stores what.
    let mut held = named.map(|tid| {
        laps.map(|addr| Breakpoint::of_thread(tid, addr, Trigger::Write).expect("one is free"))
    });
    assert_eq!(free(), before - HELD);
    let at_first = laps.map(read);
    target.signal(libc::SIGCONT);

    let pid = target.pid().to_string();
    let mut attach = cohtrace(["attach", "--json", "--duration", "3", "-p", &pid]);
    let ended = run(&mut attach, GRACE).expect_code(0);

    stop(&target);
    for (thread, breakpoints) in held.iter_mut().enumerate() {
        for (word, breakpoint) in breakpoints.iter_mut().enumerate() {
            let stores = read(laps[word]) - at_first[word];
            assert!(stores > 0, "no lap in 3 s");
            let expected = if thread == word { stores } else { 0 };
            assert_eq!(
                breakpoint.count().expect("it is open"),
                expected,
                "the debugger's count of laps[{word}] on thread {thread}"
            );
        }
    }
    subject
        .judge(&ended)
        .expect("confirmed with the breakpoints that are left");
    let watch = watch_of(&ended);
    assert!(watch.windows > 0, "{watch:?}");
    let most = (before - HELD) as u64;
    assert!(
        watch.slots.is_some_and(|slots| (1..=most).contains(&slots)),
        "{most} were left: {watch:?}"
    );
}
