"""What the words of a failed model call mean. Pure. Source: spec 04, section 5, R-4.52 to R-4.55 and R-4.58."""

import re

from lanewayd.messages import FailureClass

SHORT_WINDOW_S = 60.0


def _pattern(*phrases: str) -> re.Pattern[str]:
    return re.compile("|".join(phrases), re.IGNORECASE)


_IMAGE = _pattern(
    r"image (?:exceeds|is too large|too large|size)",
    r"image.{0,40}(?:dimensions?|pixels|resolution).{0,40}(?:exceed|too (?:large|big)|max)",
    r"image.{0,60}exceeds? .{0,20}(?:\d+ ?MB|maximum|limit)",
)
_ROLE_ORDER = _pattern(r"roles must alternate", r"incorrect role information", r"(?:first|last) message must be")
_SESSION_GONE = _pattern(
    r"(?:session|conversation)[_ ](?:id )?(?:\S+ )?(?:was )?(?:not[_ ]found|does not exist|expired|is invalid)",
    r"no (?:such )?(?:session|conversation)(?: found)?",
    r"previous_response_not_found",
)
_OVERFLOW = _pattern(
    r"request (?:is )?too large",
    r"(?:maximum )?context[ _]length",
    r"prompt (?:is )?too long",
    r"exceeds? (?:the )?(?:available |model'?s? )?(?:maximum )?context (?:window|size|length)",
    r"model(?:'s)? token limit",
    r"input (?:token count |length )?(?:\S+ )?exceeds (?:the )?(?:\w+ )?max",
    r"greater than the context",
    r"reduce the length of the (?:messages|prompt)",
    r"context_length_exceeded|context_window_exceeded",
    r"too many (?:input )?tokens",
    r"上下文(?:长度|窗口)?.{0,8}(?:超|过长)",
    r"超(?:过|出).{0,8}(?:上下文|最大长度)",
)
_NOT_OVERFLOW = _pattern(
    r"tokens? per (?:min|day)",
    r"\bTPM\b",
    r"rate.?limit",
    r"billing",
    r"reasoning is (?:mandatory|required)",
    r"context window (?:is )?too small",
)
_BILLING = _pattern(
    r"insufficient[_ ](?:quota|credits?|balance|funds)",
    r"billing",
    r"payment required",
    r"credit balance",
    r"out of credits",
    r"exceeded your current quota",
    r"spend(?:ing)? limit",
    r"account (?:is )?(?:in arrears|overdue)",
)
_QUOTA_WINDOW = _pattern(
    r"rate.?limit",
    r"(?:quota|spend|usage).{0,60}(?:reset|retry|try again|window|daily|weekly|monthly)",
    r"(?:quota|spend|usage).{0,60}per (?:min|hour|day|week|month)",
)
_PERIODIC = _pattern(
    r"(?:daily|weekly|monthly|hourly|\d+[- ]?hour) (?:\w+ )?(?:usage |token |request )?(?:limit|quota)",
    r"usage limit (?:has been )?(?:reached|exceeded)",
    r"(?:reached|exceeded|hit) your (?:\w+ )?usage limit",
)
_RATE_LIMIT = _pattern(
    r"rate.?limit", r"too many requests", r"per[- ]minute", r"\b[RT]PM\b", r"throttl", r"resource.?exhausted"
)
_SHORT_WINDOW = _pattern(
    r"per[- ](?:min|second)", r"\b[RT]PM\b", r"(?:requests|tokens)[/ ]min", r"a (?:few )?(?:second|minute|moment)s?\b"
)
_LONG_WINDOW = _pattern(r"per[- ](?:day|week|month)", r"daily|weekly|monthly", r"subscription", r"\b[RT]PD\b", r"quota")
_WAIT_IN_TEXT = re.compile(
    r"(?:try again|retry|wait|reset)\w*\s+(?:again\s+)?(?:in|after|for)?\s*"
    r"(?:(\d+)m)?\s*(\d+(?:\.\d+)?)\s*(ms|s\b|sec|min)",
    re.IGNORECASE,
)
_OVERLOADED = _pattern(
    r"overloaded", r"at capacity", r"service.?unavailable", r"temporarily unavailable", r"high demand"
)
_SERVER_ERROR = _pattern(
    r"internal.?(?:server.)?error", r"server.?error", r"api_error", r"bad gateway", r"upstream error"
)
_TRANSIENT_HTTP = _pattern(r"(?:^|\bhttp[ /]?|\bstatus(?: code)?:? )(?:408|499|50[0-4]|52[0-4])\b", r"gateway time")
_AUTH_PERMANENT = _pattern(
    r"(?:api[_ ]?key|token|credentials?|account|organi[sz]ation|workspace)\W.{0,40}"
    r"(?:revoked|deactivated|disabled|suspended|deleted|terminated)",
    r"(?:revoked|deactivated|disabled|suspended)[_ ](?:\w+[_ ])?(?:api[_ ]?key|token|credentials?|account)",
    r"key[_ ](?:revoked|deactivated|disabled)|account[_ ](?:deactivated|disabled|suspended)|permission.{0,20}revoked",
)
_AUTH = _pattern(
    r"(?:invalid|incorrect|missing|expired|no)[_ ](?:\w+[_ ])?(?:api[_ ]?key|token|credentials?)",
    r"api[_ ]?key (?:is )?(?:invalid|not valid|expired|missing)",
    r"unauthori[sz]ed",
    r"authentication",
    r"permission[_ ](?:denied|error)",
    r"forbidden",
)
_STREAM = _pattern(
    r"stream (?:was |has )?(?:ended|closed|interrupted|cut|error)",
    r"(?:connection|socket) (?:was |has been )?(?:reset|closed|lost|hung up|error|aborted)",
    r"\bE(?:CONNRESET|CONNREFUSED|PIPE|TIMEDOUT|AI_AGAIN)\b",
    r"fetch failed|network error|premature close",
)
_FORMAT = _pattern(
    r"invalid[_ ]request",
    r"bad request",
    r"validation",
    r"unprocessable",
    r"invalid[_ ](?:argument|parameter|value|type)",
)
_NO_DETAILS = _pattern(r"unknown error,? (?:\()?no (?:error )?details", r"^\W*(?:an )?unknown error\W*$")
_TIMEOUT = _pattern(r"timed? ?out", r"deadline.?exceeded")
_REFUSAL = _pattern(
    r"content.?(?:filter|policy|management)", r"safety (?:system|policy)", r"responsible.?ai", r"moderation"
)
_MODEL_GONE = _pattern(
    r"model[_ ]not[_ ]found",
    r"model (?:\S+ )?(?:does not exist|not found|is not (?:available|supported)|has been (?:deprecated|retired))",
    r"(?:no such|unknown|invalid) model",
)
_SIZES = (
    re.compile(r"([\d,]+) in the messages", re.IGNORECASE),
    re.compile(
        r"(?:resulted in|you requested|requested about|contains?|prompt has) ([\d,]+) (?:input )?tokens", re.IGNORECASE
    ),
    re.compile(r"([\d,]+) (?:input )?tokens? ?(?:>|exceeds?|is (?:greater|more|larger))", re.IGNORECASE),
    re.compile(r"(?:token count|input length|tokens?)\D{0,12}\(([\d,]+)\)", re.IGNORECASE),
    re.compile(r"(?:n_prompt_tokens|input_tokens|prompt_tokens)\W{1,4}([\d,]+)", re.IGNORECASE),
)

# In this sequence: the first pattern that matches a text decides. Overflow comes before them, but for the two
# that a request's shape is told with.
_BY_TEXT: tuple[tuple[re.Pattern[str], FailureClass], ...] = (
    (_IMAGE, FailureClass.FORMAT),
    (_ROLE_ORDER, FailureClass.FORMAT),
    (_SESSION_GONE, FailureClass.SESSION_EXPIRED),
    (_MODEL_GONE, FailureClass.MODEL_NOT_FOUND),
    (_OVERFLOW, FailureClass.CONTEXT_OVERFLOW),
    (_REFUSAL, FailureClass.REFUSAL),
    (_BILLING, FailureClass.BILLING),
    (_PERIODIC, FailureClass.RATE_LIMIT),
    (_RATE_LIMIT, FailureClass.RATE_LIMIT),
    (_OVERLOADED, FailureClass.OVERLOADED),
    (_SERVER_ERROR, FailureClass.SERVER_ERROR),
    (_TRANSIENT_HTTP, FailureClass.TIMEOUT),
    (_AUTH_PERMANENT, FailureClass.AUTH_PERMANENT),
    (_AUTH, FailureClass.AUTH),
    (_STREAM, FailureClass.TIMEOUT),
    (_FORMAT, FailureClass.FORMAT),
    (_NO_DETAILS, FailureClass.NO_ERROR_DETAILS),
    (_TIMEOUT, FailureClass.TIMEOUT),
)


def class_by_text(text: str) -> FailureClass | None:
    """What `text` says; None when it says nothing that is known.

    A conversation that does not fit (R-4.53) is only meant where the words are about nothing else (R-4.54).
    """
    for pattern, kind in _BY_TEXT:
        if pattern.search(text) and not (pattern is _OVERFLOW and _NOT_OVERFLOW.search(text)):
            return kind
    return None


def is_billing(text: str) -> bool:
    """It is about money."""
    return bool(_BILLING.search(text))


def is_overloaded(text: str) -> bool:
    """Too many callers for the service."""
    return bool(_OVERLOADED.search(text))


def is_server_error(text: str) -> bool:
    """A type or code that stands for a fault inside the service."""
    return bool(_SERVER_ERROR.search(text))


def is_quota_window(text: str) -> bool:
    """A quota or spending window that opens again by itself, said with the status of a payment."""
    return bool(_QUOTA_WINDOW.search(text))


def is_permanent(text: str) -> bool:
    """The credential or its account was revoked or deactivated: waiting does not help."""
    return bool(_AUTH_PERMANENT.search(text))


def shape_problem(text: str) -> str:
    """What is wrong with the request's shape, in words, where a retry is pointless and advice is known (R-5.132)."""
    if _IMAGE.search(text):
        return "an image is larger than the model takes"
    if _ROLE_ORDER.search(text):
        return "the order of the messages was not accepted"
    return ""


def observed_tokens(text: str) -> int:
    """The size of the prompt that an overflow names (R-4.55); 0 = it names none."""
    for pattern in _SIZES:
        found = pattern.search(text)
        if found and (digits := found.group(1).replace(",", "")):
            return int(digits)
    return 0


def is_short_window(text: str, wait_s: float | None) -> bool:
    """The limit is over within a minute (R-4.58)."""
    if wait_s is not None:
        return wait_s <= SHORT_WINDOW_S
    return bool(_SHORT_WINDOW.search(text)) and not _LONG_WINDOW.search(_SHORT_WINDOW.sub("", text))


def wait_in(text: str) -> float | None:
    """The seconds that `text` asks to wait."""
    found = _WAIT_IN_TEXT.search(text)
    if not found:
        return None
    minutes, amount, unit = found.groups()
    factor = {"ms": 0.001, "min": 60.0}.get(unit.lower(), 1.0)
    return float(minutes or 0) * 60 + float(amount) * factor
