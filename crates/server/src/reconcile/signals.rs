//! From what a driver measures to readings.

use std::time::Duration;

use drowse_core::Timestamp;
use drowse_core::counter::{Before, Meter};
use drowse_core::evidence::Read;
use drowse_core::signal::{Measured, Need, Reading, Signal, UnknownCause};
use drowse_drivers::{Error, Measure, Measures, Wanted};

use crate::config;
use crate::doubts::{Doubt, What};
use crate::hands::LOOK_WITHIN;

use crate::picture::Picture;
use crate::shared::{Shared, lock};
use crate::spec::WorkerSpec;

/// How long a read of all signals of a worker may take.
const READ_WITHIN: Duration = Duration::from_secs(10);

/// The signals that Drowse goes and reads from a driver.
fn pulled(picture: &Picture) -> Vec<Signal> {
    // Telemetry and Prometheus come from sensors.
    let from_driver = [Signal::Tcp, Signal::Cpu, Signal::Gpu, Signal::Network, Signal::Processes];
    from_driver.into_iter().filter(|signal| picture.need(*signal) != Need::Off).collect()
}

impl Shared {
    /// Reads every pulled signal of a running worker into its picture. What cannot be read is unknown.
    pub(super) async fn read_signals(&self, picture: &mut Picture, spec: &WorkerSpec) {
        let signals = pulled(picture);
        if !signals.is_empty() {
            let measures = self.measure(picture, spec, &signals).await;
            let now = self.clock.now();
            match measures {
                Ok(measures) => self.record(picture, &signals, &measures, now),
                Err(error) => {
                    self.metrics.count(|counted| counted.driver_errors += 1);
                    doubt_all(picture, &Doubt::from(&error));
                    fail(picture, &signals, now);
                }
            }
        }
        self.read_connections(picture);
    }

    fn read_connections(&self, picture: &mut Picture) {
        let shut = lock(&self.shut_doors).get(&picture.worker.id).cloned();
        picture.read_connections(shut, self.clock.now());
    }

    /// The driver could not even be looked at, or nobody can look into the worker.
    pub(super) fn fail_all(&self, picture: &mut Picture) {
        fail(picture, &pulled(picture), self.clock.now());
        self.read_connections(picture);
    }

    /// Asks where its ports are, so that whoever comes next is led there at once; and if nobody can say, so that it is
    /// known before somebody comes.
    pub(super) async fn find_ports(&self, picture: &mut Picture, spec: &WorkerSpec) {
        let ports = spec.places().filter_map(|place| match place {
            config::Target::Port(port) => Some(port),
            config::Target::Address(_) => None,
        });
        for port in ports {
            let id = &picture.worker.id;
            let located = async {
                let driver = self.hands.of(id, spec).await?;
                self.hands.call("locate", driver.locate(id, port, LOOK_WITHIN)).await
            };
            if let Err(error) = located.await {
                picture.doubted.insert(What::Port(port), Doubt::from(&error));
            }
        }
    }

    async fn measure(
        &self,
        picture: &Picture,
        spec: &WorkerSpec,
        signals: &[Signal],
    ) -> Result<Measures, Error> {
        let id = &picture.worker.id;
        let driver = self.hands.of(id, spec).await?;
        let routed: Vec<u16> = spec.places().map(config::Target::port).collect();
        // Those that tell of a stretch tell of the one since they were last read. After a gap they begin anew: what was
        // before it has been judged, and is no use of now.
        let gpu = picture.checked.evidence.sample(Signal::Gpu);
        let covered = gpu.filter(|sample| sample.covered_since.is_some());
        let wanted = Wanted::of(signals, &routed).since(covered.map(|sample| sample.read_at));
        self.hands.call("read", driver.read(id, wanted, READ_WITHIN)).await
    }

    fn record(&self, picture: &mut Picture, signals: &[Signal], measures: &Measures, now: Timestamp) {
        picture.totals.boot.clone_from(&measures.boot);
        picture.checked.memory_bytes = measures.memory_bytes;
        for signal in signals {
            let measure = measures.get(*signal);
            if let Some(Measure::Total(total)) = measure {
                picture.totals.of[*signal as usize] = Some(total);
            }
            let read = match measure {
                Some(measure) => self.reading(picture, *signal, measure, now),
                // This driver has no such signal for this worker. If it is required, that is unknown by itself.
                None if picture.checked.evidence.sample(*signal).is_none() => continue,
                None => Read::unknown(UnknownCause::Vanished, now),
            };
            picture.record(*signal, read, now);
            doubt(picture, *signal, read.reading, measures);
            // Everybody reads as zero who has none: that is no reason to need them.
            if *signal == Signal::Gpu && measures.has_gpus && matches!(measure, Some(Measure::Level { .. })) {
                picture.worker.gpu_was_read = true;
            }
        }
    }

    fn reading(&self, picture: &Picture, signal: Signal, measure: Measure, now: Timestamp) -> Read {
        let policy = &picture.resolved.policy;
        match (measure, signal) {
            (Measure::Unknown(cause), _) => Read::unknown(cause, now),
            (Measure::Total(total), Signal::Cpu | Signal::Network) => {
                let meter = if signal == Signal::Cpu { Meter::Cpu } else { Meter::Network };
                let interval = picture.interval();
                let kept = self.meters.of(&picture.worker.id, &picture.checked.counters);
                let counters = kept.as_ref().unwrap_or(&picture.checked.counters);
                match counters.before(picture.totals.boot.as_ref(), signal, total.at, interval) {
                    Before::Total(before) if kept.is_none() => {
                        meter.read_after_absence(&before, &total, policy, interval)
                    }
                    Before::Total(before) => meter.read(Some(&before), &total, policy, interval),
                    Before::Nothing => meter.read(None, &total, policy, interval),
                    Before::TooSoon { since } => Read::unknown(UnknownCause::FirstSample, since),
                }
            }
            (Measure::Total(_), _) => Read::unknown(UnknownCause::ProbeFailed, now),
            (Measure::AtLeast { value, at, cause }, _) => {
                let measured = Measured { value, active_above: policy.threshold(signal, picture.interval()) };
                match measured.reading(at) {
                    reading @ Reading::Active { .. } => {
                        Read { reading, read_at: at, measured: Some(measured), tells_gap: false }
                    }
                    Reading::Quiet | Reading::Unknown { .. } => Read::unknown(cause, now),
                }
            }
            (Measure::Level { value, at }, _) => {
                let measured = Measured { value, active_above: policy.threshold(signal, picture.interval()) };
                Read {
                    reading: measured.reading(at),
                    read_at: at,
                    measured: Some(measured),
                    tells_gap: false,
                }
            }
        }
    }
}

/// Notes why a signal is unknown, if that is for people to know.
fn doubt(picture: &mut Picture, signal: Signal, reading: Reading, measures: &Measures) {
    let Reading::Unknown { cause } = reading else { return };
    let why = measures.because.iter().find(|(of, _)| *of == signal).map(|(_, why)| why.as_str());
    let is_needed = picture.need(signal) == Need::Required;
    let is_worth_it = match measures.get(signal) {
        // A first sample of a counter is in the nature of counters.
        Some(Measure::Total(_) | Measure::Level { .. }) => false,
        Some(Measure::Unknown(_)) => why.is_some() || is_needed || signal != Signal::Gpu,
        Some(Measure::AtLeast { .. }) => why.is_some() || (is_needed && cause != UnknownCause::FirstSample),
        None => why.is_some() || is_needed,
    };
    if is_worth_it {
        let doubt = Doubt::new(cause, why.unwrap_or_else(|| cause.sentence()));
        picture.doubted.insert(What::Signal(signal), doubt);
    }
}

/// Nothing could be read.
fn fail(picture: &mut Picture, signals: &[Signal], now: Timestamp) {
    for signal in signals.iter().copied().filter(|signal| is_there(picture, *signal)).collect::<Vec<_>>() {
        let cause = picture.doubted.cause(signal).unwrap_or(UnknownCause::ProbeFailed);
        picture.record(signal, Read::unknown(cause, now), now);
    }
}

/// Whether it is any loss that a signal cannot be read. One that is only counted and was never there is none.
fn is_there(picture: &Picture, signal: Signal) -> bool {
    picture.need(signal) == Need::Required || picture.checked.evidence.sample(signal).is_some()
}

/// Notes why nothing can be read.
pub(super) fn doubt_all(picture: &mut Picture, doubt: &Doubt) {
    for signal in pulled(picture) {
        if is_there(picture, signal) {
            picture.doubted.insert(What::Signal(signal), doubt.clone());
        }
    }
}
