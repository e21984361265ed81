//! The stable codes of problems, as one table.

/// What went wrong, as a program tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Code {
    /// The request could not be read: no JSON, a wrong type, a bad parameter.
    BadRequest,
    /// It could be read and says something that cannot be.
    Invalid,
    /// No token, or one that opens nothing.
    Unauthorized,
    /// The token's role does not allow it.
    Forbidden,
    /// There is no such thing.
    NotFound,
    /// The path is right and the method is not.
    MethodNotAllowed,
    /// The id is taken.
    AlreadyExists,
    /// Holds keep the worker awake, and the request was not forced.
    Held,
    /// The worker's status does not allow it.
    WrongStatus,
    /// The worker is in the middle of something.
    InTransition,
    /// What put the worker to sleep waits for a person.
    WakeNotAllowed,
    /// The worker is protected, and the request was not forced.
    Protected,
    /// The worker was taken out of service.
    OutOfService,
    /// The worker is stopped, and this does not start it.
    Stopped,
    /// Something changed between the decision and its commit.
    Overtaken,
    /// It belongs to an older run, generation or intent.
    Late,
    /// An environment variable pins the key.
    Pinned,
    /// It comes from the configuration file and can only be changed there.
    FromFile,
    /// Two settings contradict each other.
    PolicyConflict,
    /// The brake is not engaged.
    BrakeNotEngaged,
    /// The database is not ours to copy.
    BackupElsewhere,
    /// A lease without a time to live.
    LeaseTtlMissing,
    /// A lease for longer than policy allows.
    LeaseTtlTooLong,
    /// A reason that does not fit a line.
    LeaseReasonTooLong,
    /// A holder's name that does not fit a URL.
    LeaseHolderTooLong,
    /// More leases than one worker may have.
    LeaseTooManyHolders,
    /// Leases have kept the worker awake for long enough.
    LeaseCeiling,
    /// The body is larger than allowed.
    TooLarge,
    /// The body is of a kind that is not understood.
    UnsupportedMediaType,
    /// Too many requests.
    TooManyRequests,
    /// A fault of ours.
    Internal,
    /// Not now: starting, stopping, or the database cannot be written.
    Unavailable,
}

impl Code {
    pub const ALL: [Code; 32] = [
        Code::BadRequest,
        Code::Invalid,
        Code::Unauthorized,
        Code::Forbidden,
        Code::NotFound,
        Code::MethodNotAllowed,
        Code::AlreadyExists,
        Code::Held,
        Code::WrongStatus,
        Code::InTransition,
        Code::WakeNotAllowed,
        Code::Protected,
        Code::OutOfService,
        Code::Stopped,
        Code::Overtaken,
        Code::Late,
        Code::Pinned,
        Code::FromFile,
        Code::PolicyConflict,
        Code::BrakeNotEngaged,
        Code::BackupElsewhere,
        Code::LeaseTtlMissing,
        Code::LeaseTtlTooLong,
        Code::LeaseReasonTooLong,
        Code::LeaseHolderTooLong,
        Code::LeaseTooManyHolders,
        Code::LeaseCeiling,
        Code::TooLarge,
        Code::UnsupportedMediaType,
        Code::TooManyRequests,
        Code::Internal,
        Code::Unavailable,
    ];

    /// The code as it is sent, and the last part of the problem's `type`.
    pub const fn code(self) -> &'static str {
        self.row().0
    }

    /// The status of the answer.
    pub const fn status(self) -> u16 {
        self.row().1
    }

    /// What kind of problem it is, in a few words.
    pub const fn title(self) -> &'static str {
        self.row().2
    }

    pub fn from_code(code: &str) -> Option<Code> {
        Self::ALL.into_iter().find(|known| known.code() == code)
    }

    const fn row(self) -> (&'static str, u16, &'static str) {
        match self {
            Code::BadRequest => ("bad_request", 400, "The request could not be read"),
            Code::Invalid => ("invalid", 422, "The request says something that cannot be"),
            Code::Unauthorized => ("unauthorized", 401, "A valid token is needed"),
            Code::Forbidden => ("forbidden", 403, "The token does not allow this"),
            Code::NotFound => ("not_found", 404, "There is no such thing"),
            Code::MethodNotAllowed => ("method_not_allowed", 405, "This cannot be done here"),
            Code::AlreadyExists => ("already_exists", 409, "The id is taken"),
            Code::Held => ("held", 409, "Holds keep the worker awake"),
            Code::WrongStatus => ("wrong_status", 409, "The worker's status does not allow this"),
            Code::InTransition => ("in_transition", 409, "The worker is in the middle of something"),
            Code::WakeNotAllowed => ("wake_not_allowed", 409, "The worker's sleep waits for a person"),
            Code::Protected => ("protected", 409, "The worker is protected"),
            Code::OutOfService => ("out_of_service", 409, "The worker is out of service"),
            Code::Stopped => ("stopped", 409, "The worker is stopped"),
            Code::Overtaken => ("overtaken", 409, "Something changed in the meantime"),
            Code::Late => ("late", 409, "This comes too late"),
            Code::Pinned => ("pinned", 409, "An environment variable pins this key"),
            Code::FromFile => ("from_file", 409, "This comes from the configuration file"),
            Code::PolicyConflict => ("policy_conflict", 422, "Two settings contradict each other"),
            Code::BrakeNotEngaged => ("brake_not_engaged", 409, "The brake is not engaged"),
            Code::BackupElsewhere => ("backup_elsewhere", 409, "The database is not ours to copy"),
            Code::LeaseTtlMissing => ("lease_ttl_missing", 422, "A lease needs a time to live"),
            Code::LeaseTtlTooLong => ("lease_ttl_too_long", 422, "The time to live is too long"),
            Code::LeaseReasonTooLong => ("lease_reason_too_long", 422, "The reason is too long"),
            Code::LeaseHolderTooLong => ("lease_holder_too_long", 422, "The holder's name is too long"),
            Code::LeaseTooManyHolders => ("lease_too_many_holders", 409, "The worker has too many leases"),
            Code::LeaseCeiling => ("lease_ceiling", 409, "Leases have kept the worker awake for long enough"),
            Code::TooLarge => ("too_large", 413, "The request is too large"),
            Code::UnsupportedMediaType => ("unsupported_media_type", 415, "The body is of the wrong kind"),
            Code::TooManyRequests => ("too_many_requests", 429, "Too many requests"),
            Code::Internal => ("internal", 500, "Something went wrong here"),
            Code::Unavailable => ("unavailable", 503, "Not now"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_found_by_its_name_and_only_once() {
        for code in Code::ALL {
            assert_eq!(Code::from_code(code.code()), Some(code));
            assert!((400..600).contains(&code.status()));
        }
    }
}
