//! Public types whose forms are not kept, with the reason.

const HANDLE: &str = "does something, and holds connections";
const SETTING: &str = "says how an instance runs: its form is the configuration file's";
const FAULT: &str = "tells people who look for a fault what is stored: it changes with that";
const SETS: &str = "belongs to sets, whose members are the caller's";
const INSIDE: &str = "is no part of the API: another crate here needs it";
const ROUTER: &str = "is a part of what is asked of servers and answered, not of what users see";
const LENT: &str = "is lent for the time of a call";

/// Public types that are not kept, and why.
pub(super) const WITHOUT: &[(&str, &[&str])] = &[
    (SETTING, &["ActLimit", "ActLimits"]),
    ("is bytes, which are stored as such", &["Document", "DocumentChange", "DocumentVersion", "IdList"]),
    ("is bytes, which are stored as such", &["WantedLanguages"]),
    ("is a constant of its caller's", &["TicketKind"]),
    ("is told by an error, which serializes without it", &["FrequencyBound"]),
    (HANDLE, &["Delivery", "Engine", "EngineBuilder", "Importer", "Registration", "StoppedTenant", "Store"]),
    ("looks through an engine", &["Reader", "StoredData", "Viewer"]),
    ("holds a fan-out that goes on", &["FanoutState"]),
    (
        ROUTER,
        &[
            "Answer",
            "Batch",
            "Command",
            "Epoch",
            "FenceOutcome",
            "Library",
            "Reply",
            "Request",
            "Router",
            "TouchedServers",
        ],
    ),
    (SETTING, &["Config", "EngineSettings", "FsckOptions", "ModeSettings", "PolicyName"]),
    (SETTING, &["RegistrationSettings", "RouterSettings", "Seed", "SetSettings", "StoreOptions", "TlsFiles"]),
    (
        "tells the program's tables what a server runs",
        &["Allocator", "ListpackLimits", "ServerProgram", "Version"],
    ),
    (
        "decides who is pulled: code, with its settings",
        &["AsItIs", "CostModel", "PullOnly", "PushOnly", "Threshold"],
    ),
    ("is what a policy is asked with, by the engine", &["AccountFacts"]),
    (LENT, &["Audience", "DraftFacts", "FilterFacts", "ScoreFacts"]),
    ("is what a service brings along, or stands for none", &["Importance"]),
    ("is what a judge answers in this process, and stored by nobody", &["Judgement"]),
    (FAULT, &["HiddenPost", "RankingInspection", "Score", "ScoredPost"]),
    (
        FAULT,
        &[
            "HomeCandidate",
            "RemovedData",
            "Findings",
            "FindingKind",
            "StoredHomeEntry",
            "HomeStatus",
            "Inspection",
        ],
    ),
    (
        FAULT,
        &[
            "ListLength",
            "ListMembership",
            "PostListing",
            "OpenTask",
            "OutboxPost",
            "PostInspection",
            "ListRemoval",
        ],
    ),
    (FAULT, &["ArchiveStanding", "ArchivedOwner", "PostTier"]),
    (FAULT, &["SetSizes", "StoredClaim", "StoredHome", "StoredNames", "StoredOutbox", "HomeVerdict"]),
    (
        SETS,
        &[
            "Change",
            "Checkpoint",
            "CommonMembers",
            "Layout",
            "MemberName",
            "ScoreRange",
            "SetPage",
            "Sets",
            "SortedSet",
            "WalkPage",
        ],
    ),
    ("says where data lies, to code", &["Bucket", "Buckets", "Keyspace"]),
    (INSIDE, &["Claim", "FenceTries", "IdHasher", "MergeOutcome", "PieceRead", "ScoredMember"]),
    (INSIDE, &["SpreadStep", "AttemptStep", "TicketHash", "Traits"]),
    ("has a password or an address in it", &["Name", "SignUp"]),
    ("is made by a look at a draft's text, and used up by it", &["MentionedName", "TextNames", "WrittenTag"]),
    ("is a decision under way: what comes of it is a Decision", &["TenantChange"]),
    ("is part of a post's form", &["Content", "PostHeader"]),
    ("is read out of a post", &["Revision"]),
];
