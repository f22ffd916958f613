//! What others' accesses add to one's own: two models, each with its error.
//!
//! Of many processors at one server (memory, a bus, a link), a closed queue with deterministic service and Poisson arrivals
//! from outside (Hristea, "A System for Detecting and Analyzing Memory Contention", MIT 1997, chapter 5). Of a line that few
//! fight over, the share of accesses that find it gone.

/// A measured point of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Requests of the others, per nanosecond.
    pub rate: f64,
    /// Of one's own, nanoseconds.
    pub latency_ns: f64,
}

/// A curve by a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// Service time, nanoseconds.
    pub service_ns: f64,
    /// Root of the sum of squared errors, divided by the number of points, as Hristea gives it; nanoseconds.
    pub error_per_point_ns: f64,
    /// Root of the mean of squared errors, nanoseconds.
    pub rms_ns: f64,
}

/// Latencies that rose by less than this, as a part of the unloaded one, say nothing of a server.
const LOADED: f64 = 0.1;
/// Steps of the golden section; each leaves 0.618 of the interval.
const STEPS: usize = 80;
/// Places at which the search for the lowest valley begins.
const PLACES: usize = 256;

/// Latency in nanoseconds of a closed customer at a server of deterministic service, with others that come at random.
///
/// `rate` is of the others, per nanosecond; `unloaded_ns` is the latency without them. With `A = service * rate` it solves
/// `(1 - A) L^2 - (S + L0 (1 - A) + S A / 2) L + L0 S = 0` for the larger root (Hristea, equation 5.18). `None` where no
/// latency holds the balance.
pub fn closed_md1(service_ns: f64, unloaded_ns: f64, rate: f64) -> Option<f64> {
    let load = service_ns * rate;
    let a = 1.0 - load;
    let b = -service_ns - unloaded_ns * a - service_ns * load / 2.0;
    let c = unloaded_ns * service_ns;
    let root = if a.abs() < 1e-9 {
        -c / b
    } else {
        let under = b * b - 4.0 * a * c;
        let roots = [1.0, -1.0].map(|sign| (-b + sign * under.sqrt()) / (2.0 * a));
        roots[0].max(roots[1])
    };
    (root.is_finite() && root > 0.0).then_some(root)
}

/// Fits the service time of [`closed_md1`] by least squares. `None` where latency did not rise by a tenth, or where there are
/// fewer than three points.
pub fn fit_closed_md1(unloaded_ns: f64, points: &[Point]) -> Option<Fit> {
    let highest = points.iter().map(|p| p.latency_ns).fold(0.0, f64::max);
    if points.len() < 3 || highest <= unloaded_ns * (1.0 + LOADED) {
        return None;
    }
    let squares = |service_ns: f64| -> f64 {
        let error = |p: &Point| match closed_md1(service_ns, unloaded_ns, p.rate) {
            Some(latency) => (latency - p.latency_ns).powi(2),
            None => f64::INFINITY,
        };
        points.iter().map(error).sum()
    };
    let service_ns = lowest(unloaded_ns / PLACES as f64, unloaded_ns, squares);
    Some(Fit::of(service_ns, squares(service_ns), points.len()))
}

impl Fit {
    fn of(service_ns: f64, squares: f64, points: usize) -> Fit {
        Fit {
            service_ns,
            error_per_point_ns: squares.sqrt() / points as f64,
            rms_ns: (squares / points as f64).sqrt(),
        }
    }
}

/// Where a function is lowest: the best of evenly spread places, then the golden section between its neighbours.
fn lowest(from: f64, to: f64, of: impl Fn(f64) -> f64) -> f64 {
    let step = (to - from) / PLACES as f64;
    let places = (0..=PLACES).map(|n| from + step * n as f64);
    let best = places.fold((from, f64::INFINITY), |best, at| {
        let value = of(at);
        if value < best.1 { (at, value) } else { best }
    });
    let golden = (5.0_f64.sqrt() - 1.0) / 2.0;
    let (mut low, mut high) = ((best.0 - step).max(from), (best.0 + step).min(to));
    for _ in 0..STEPS {
        let (left, right) = (high - golden * (high - low), low + golden * (high - low));
        if of(left) <= of(right) {
            high = right;
        } else {
            low = left;
        }
    }
    f64::midpoint(low, high)
}

/// Mean values of so many equal customers of one server with deterministic service, who think between requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Queue {
    /// From a request to its answer, nanoseconds.
    pub response_ns: f64,
    /// Answers, per nanosecond.
    pub throughput: f64,
}

/// Mean-value analysis: `R(n) = S (1 + Q(n-1)) - S U(n-1) / 2`, `X(n) = n / (R(n) + Z)`, `Q = X R`, `U = X S`, and never more
/// answers than the server gives: `R(n) >= n S - Z`. An approximation: of simulated queues it is 14 % short at most, near the
/// load at which the server is never idle. `None` of no customers.
pub fn equal_customers(customers: u32, service_ns: f64, think_ns: f64) -> Option<Queue> {
    let mut found = None;
    let (mut length, mut used) = (0.0, 0.0);
    for n in 1..=customers {
        let queued_ns = service_ns * (1.0 + length) - service_ns * used / 2.0;
        let response_ns = queued_ns.max(f64::from(n) * service_ns - think_ns);
        let throughput = f64::from(n) / (response_ns + think_ns);
        length = throughput * response_ns;
        used = throughput * service_ns;
        found = Some(Queue {
            response_ns,
            throughput,
        });
    }
    found
}

/// What a line costs that others take in between.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LineCosts {
    /// An access that finds the line where it left it, nanoseconds.
    pub own_ns: f64,
    /// One that finds it in another's cache, nanoseconds.
    pub taken_ns: f64,
}

impl LineCosts {
    /// The share of accesses that find the line gone, 0 to 1: as many as the others' accesses between two of one's own.
    pub fn share_gone(self, others_rate: f64, own_interval_ns: f64) -> f64 {
        (others_rate * own_interval_ns).clamp(0.0, 1.0)
    }

    /// What an access takes longer than alone, nanoseconds.
    pub fn added_ns(self, share_gone: f64) -> f64 {
        share_gone * (self.taken_ns - self.own_ns).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNLOADED_NS: f64 = 338.0;
    /// Bytes of a line of Hristea's machine.
    const LINE: f64 = 128.0;
    /// MB/s of the others, and nanoseconds; tables 5.1 (memory) and 5.2 (bus).
    const MEMORY: [(f64, f64); 7] = [
        (0.0, 338.0),
        (41.0, 371.0),
        (121.0, 421.0),
        (233.0, 483.0),
        (336.0, 572.0),
        (484.0, 915.0),
        (538.0, 1462.0),
    ];
    const BUS: [(f64, f64); 5] = [
        (0.0, 338.0),
        (13.9, 368.0),
        (120.0, 431.0),
        (316.0, 586.0),
        (386.0, 786.0),
    ];

    fn near(value: f64, expected: f64) -> bool {
        (value - expected).abs() < 1e-9
    }

    fn rate(megabytes: f64) -> f64 {
        megabytes * 1e6 / LINE / 1e9
    }

    fn points(table: &[(f64, f64)]) -> Vec<Point> {
        let point = |(megabytes, latency_ns): &(f64, f64)| Point {
            rate: rate(*megabytes),
            latency_ns: *latency_ns,
        };
        table.iter().map(point).collect()
    }

    #[test]
    fn hristeas_tables_are_fitted_better_than_in_the_thesis() {
        let memory = fit_closed_md1(UNLOADED_NS, &points(&MEMORY)).expect("loaded");
        let bus = fit_closed_md1(UNLOADED_NS, &points(&BUS)).expect("loaded");
        let within = |value: f64, expected: f64, by: f64| {
            assert!((value - expected).abs() <= by, "{value} for {expected}");
        };
        within(memory.service_ns, 189.2, 0.05);
        within(memory.error_per_point_ns, 18.2, 0.05);
        within(LINE / memory.service_ns * 1000.0, 677.0, 0.5);
        within(bus.service_ns, 200.1, 0.05);
        within(bus.error_per_point_ns, 10.0, 0.05);
        within(LINE / bus.service_ns * 1000.0, 640.0, 0.5);
    }

    #[test]
    fn at_the_theses_own_service_time_the_formula_gives_what_it_gives() {
        let at_195 = MEMORY.map(|(mb, _)| closed_md1(195.0, UNLOADED_NS, rate(mb)));
        let at_195 = at_195.map(|latency| latency.map(f64::round));
        let expected = [338.0, 354.0, 394.0, 482.0, 623.0, 1133.0, 1639.0];
        assert_eq!(at_195, expected.map(Some));
    }

    #[test]
    fn a_curve_that_does_not_rise_is_not_fitted() {
        let flat = [0.0, 100.0, 200.0, 300.0].map(|mb| (mb, UNLOADED_NS * 1.05));
        assert_eq!(fit_closed_md1(UNLOADED_NS, &points(&flat)), None);
        assert_eq!(fit_closed_md1(UNLOADED_NS, &points(&MEMORY[..2])), None);
    }

    #[test]
    fn one_customer_waits_for_nobody_and_many_share_the_server() {
        assert_eq!(equal_customers(0, 10.0, 0.0), None);
        let of = |customers| equal_customers(customers, 10.0, 90.0).expect("some");
        let is = |queue: Queue, response_ns: f64, throughput: f64| {
            assert!(
                near(queue.response_ns, response_ns) && near(queue.throughput, throughput),
                "{queue:?}"
            );
        };
        is(of(1), 10.0, 0.01);
        is(of(100), 910.0, 0.1);
    }

    /// A queue whose customers come one after the other: what mean-value analysis is to predict.
    #[test]
    fn mean_values_are_near_those_of_a_simulated_queue() {
        const SERVICE: f64 = 100.0;
        const REQUESTS: usize = 200_000;
        for (customers, think) in [(2_u32, 150.0), (4, 300.0), (8, 200.0)] {
            let mut seed = 1_u64;
            let mut random = || {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                ((seed >> 11) as f64 + 1.0) / (1_u64 << 53) as f64
            };
            let mut next: Vec<f64> = (0..customers).map(|_| -think * random().ln()).collect();
            let (mut free_at, mut waited) = (0.0_f64, 0.0);
            for _ in 0..REQUESTS {
                let (who, came) = (next.iter().copied().enumerate())
                    .min_by(|a, b| a.1.total_cmp(&b.1))
                    .expect("customers");
                free_at = free_at.max(came) + SERVICE;
                waited += free_at - came;
                next[who] = free_at - think * random().ln();
            }
            let simulated = waited / REQUESTS as f64;
            let predicted = equal_customers(customers, SERVICE, think).expect("some");
            let off = predicted.response_ns / simulated - 1.0;
            assert!((-0.15..0.02).contains(&off), "{customers}: {off}");
        }
    }

    #[test]
    fn a_line_is_gone_as_often_as_others_come_between_and_never_more_than_always() {
        let line = LineCosts {
            own_ns: 10.0,
            taken_ns: 30.0,
        };
        assert!(near(line.share_gone(0.002, 100.0), 0.2));
        assert!(near(line.share_gone(0.02, 100.0), 1.0));
        assert!(near(line.added_ns(0.2), 4.0));
        assert!(near(line.added_ns(0.0), 0.0));
    }
}
