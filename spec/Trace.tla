--------------------------------- MODULE Trace ---------------------------------
(* Explains recorded runs by behaviours of Forwarding.tla. judge/spec writes the  *)
(* slices: each is the history of one request, or of all requests of a run, as    *)
(* two sequences: the events of the nodes of a host, in the order of its clock,   *)
(* and ZooKeeper's transactions, in the order of zxids. A step takes the next     *)
(* entry of one of them. Steps without an entry are: an Envelope is taken from    *)
(* the queue, a connection breaks, a multi is sent again, ZooKeeper rejects a     *)
(* multi, a deadline passes at the controller, it withholds a response.           *)
EXTENDS Forwarding, Integers

CONSTANTS Slices,  \* a set of [number, events, commits]
          IsWhole  \* TRUE: the slice has all requests of a run; FALSE: it has one
VARIABLES slice,   \* one of them; it never changes
          at,      \* how many events are explained
          zat,     \* how many transactions are explained
          queued,  \* Envelopes that arrived, [req, node, attempt], not taken yet
          attempt, \* for each request the number of the latest attempt
          lost,    \* for each request the latest attempt that ended without a response
          replies, \* the responses that controllers decided, <<request, digest>>
          noted,   \* nodes whose last commit_unknown is not followed by a resend yet
          replied  \* the requests whose broker has a response

attempts == <<attempt, lost>>
seen == <<queued, attempts, replies, noted, replied>>
traceVars == <<vars, slice, at, zat, seen>>

\* States that differ only in the budget, the log and the slice's other fields are one state.
TraceView == <<zk, pipe, acks, ctl, net, clients, truths, slice.number, at, zat, seen>>

Event == slice.events[at + 1]
Commit == slice.commits[zat + 1]
Takes(kind) == /\ at < Len(slice.events) /\ Event.kind = kind
               /\ at' = at + 1 /\ UNCHANGED <<slice, zat>>
TakesCommit(kind) == /\ zat < Len(slice.commits) /\ Commit.kind = kind
                     /\ zat' = zat + 1 /\ UNCHANGED <<slice, at, seen>>
Silent == UNCHANGED <<slice, at, zat>>
NextIs(kind, n) ==
  /\ at < Len(slice.events) /\ Event.kind = kind /\ Event.node = n

TraceInit ==
  /\ Init /\ slice \in Slices /\ at = 0 /\ zat = 0
  /\ queued = {} /\ attempt = [r \in Requests |-> 0] /\ lost = attempt
  /\ replies = {} /\ noted = {} /\ replied = {}

-------------------------------------------------------------------------------
\* ZooKeeper's transactions.

Elected == /\ TakesCommit("elected") /\ ClaimSent(Commit.node) /\ zk'.epoch = Commit.epoch

Ended == TakesCommit("ended") /\ SessionEnded(Commit.epoch)

OwnerDeleted == TakesCommit("deleted") /\ ControllerZnodeDeleted

\* Commits that are not part of the slice: of other requests, of background work, before the run.
Skipped == /\ TakesCommit("skipped")
           /\ zk' = [zk EXCEPT !.counter = Commit.num]
           /\ UNCHANGED <<pipe, acks, ctl, net, clients, budget, ghosts>>

\* Another request, background work, or another program changed the elements.
Changed == /\ TakesCommit("changed")
           /\ zk' = [zk EXCEPT !.exists = [t \in Topics |-> IF t \in Commit.topics
                                                            THEN Commit.exists ELSE @[t]]]
           /\ UNCHANGED <<pipe, acks, ctl, net, clients, budget, ghosts>>

Committed ==
  /\ TakesCommit("committed") /\ pipe[Commit.epoch] # <<>>
  /\ LET multi == Head(pipe[Commit.epoch]).multi IN
     /\ multi.num = Commit.num /\ Range(multi.writes) = Commit.writes
     /\ Verdict(Commit.epoch, multi) = "ok"
     /\ Applied(Commit.epoch)

-------------------------------------------------------------------------------
\* The nodes' events.

TookOffice == /\ Takes("became_active") /\ ctl[Event.node].epoch = Event.epoch
              /\ BecameActive(Event.node) /\ UNCHANGED seen

LeftOffice == /\ Takes("resigned") /\ ctl[Event.node].epoch = Event.epoch
              /\ Resigned(Event.node)
              /\ noted' = noted \ {Event.node} /\ UNCHANGED <<queued, attempts, replies, replied>>

Restarted ==
  /\ Takes("restarted") /\ NodeRestarted(Event.node)
  /\ queued' = {q \in queued : q.node # Event.node} /\ noted' = noted \ {Event.node}
  /\ UNCHANGED <<attempts, replies, replied>>

\* The process before the one that sent the request ended.
Former ==
  /\ Takes("former_ended") /\ Set(Event.node, Standby)
  /\ queued' = {q \in queued : q.node # Event.node} /\ noted' = noted \ {Event.node}
  /\ UNCHANGED <<zk, pipe, acks, net, clients, budget, ghosts, attempts, replies, replied>>

Sent ==
  /\ Takes("forward_sent")
  /\ LET r == Event.req IN
     /\ ForwardSent(r) /\ Event.attempt = attempt[r] + 1 /\ lost[r] = attempt[r]
     /\ attempt' = [attempt EXCEPT ![r] = Event.attempt]
  /\ UNCHANGED <<queued, lost, replies, noted, replied>>

Arrived ==
  /\ Takes("envelope_received") /\ Event.attempt \in 1..attempt[Event.req]
  /\ queued' = queued \cup {[req |-> Event.req, node |-> Event.node, attempt |-> Event.attempt]}
  /\ UNCHANGED <<vars, attempts, replies, noted, replied>>

\* In a whole run, an Envelope is taken just before the entry that needs it.
IsDue(q) ==
  /\ at < Len(slice.events)
  /\ Event.kind \in {"execution_started", "request_decided", "forward_replied"}
  /\ q.req = Event.req /\ q.attempt \in Event.takes
AllAreTaken == IsWhole => {q \in queued : IsDue(q)} = {}

\* Silent: the controller takes an Envelope.
Taken ==
  /\ Silent
  /\ \E q \in queued :
       /\ IsWhole => IsDue(q)
       /\ queued' = queued \ {q}
       /\ LET r == q.req
              isLate == q.attempt < attempt[r] \/ waits[r] # OnItsWay IN
          IF isLate /\ r \notin late
            THEN /\ IsActive(q.node)
                 /\ Set(q.node, [ctl[q.node] EXCEPT !.inbox = IF r \in Running(q.node) THEN @
                                                              ELSE @ \cup {r}])
                 /\ UNCHANGED <<zk, pipe, acks, net, clients, budget, ghosts>>
          ELSE EnvelopeReceived(q.node, r, isLate)
  /\ UNCHANGED <<attempts, replies, noted, replied>>

\* NOT_CONTROLLER ends the attempt; any other error ends the request.
Rejected ==
  /\ Takes("envelope_rejected")
  /\ \E q \in queued :
       /\ q.node = Event.node /\ q.req = Event.req
       /\ IsWhole => q.attempt = Event.attempt
       /\ queued' = queued \ {q}
  /\ IF Event.isFinal
       THEN /\ waits' = [waits EXCEPT ![Event.req] = IF @ = Idle THEN Idle ELSE EpochMax]
            /\ resp' = resp \cup {[req |-> Event.req, end |-> EndedBy("rejected")]}
     ELSE UNCHANGED <<waits, resp>>
  /\ UNCHANGED <<zk, pipe, acks, ctl, late, clients, budget, ghosts, attempts, replies,
                 noted, replied>>

\* What the slice leaves out: the counter and the topics that decisions are made on.
Informed ==
  /\ Takes("informed") /\ IsActive(Event.node)
  /\ LET may == Event.may
         open == {t \in DOMAIN may : may[t] = BOOLEAN} IN
     \E free \in [open -> BOOLEAN] :
       Set(Event.node, [ctl[Event.node] EXCEPT
         !.exists = [t \in Topics |-> IF t \in open THEN free[t]
                                      ELSE IF t \in DOMAIN may THEN TRUE \in may[t] ELSE @[t]],
         !.counter = IF Event.num < 0 THEN @ ELSE Event.num])
  /\ UNCHANGED <<zk, pipe, acks, net, clients, budget, ghosts, seen>>

\* The multi conflicted with another program's write: the request is decided again.
Conflicted ==
  /\ Takes("conflicted")
  /\ LET c == ctl[Event.node] IN
     /\ IsActive(Event.node) /\ Event.req \in DOMAIN c.decided
     /\ Set(Event.node, [c EXCEPT !.flight = <<>>, !.todo = <<>>, !.inbox = {Event.req},
                                  !.decided = <<>>])
     /\ pipe' = [pipe EXCEPT ![c.epoch] = <<>>] /\ acks' = [acks EXCEPT ![c.epoch] = <<>>]
  /\ UNCHANGED <<zk, net, clients, budget, ghosts, seen>>

\* "?": the execution has no decision, so its result for this element is not recorded.
Started ==
  /\ Takes("execution_started") /\ ctl[Event.node].epoch = Event.epoch /\ AllAreTaken
  /\ LET open == {t \in Elements(Event.req) : Event.errors[t] = "?"} IN
     \E free \in [open -> Errors] :
       ExecutionStarted(Event.node, Event.req,
         [t \in Elements(Event.req) |-> IF t \in open THEN free[t] ELSE Event.errors[t]])
  /\ UNCHANGED seen

\* The transaction of the next multi stores floors, <<node, floor>>: their brokers reported them.
FloorsReported ==
  /\ Takes("floors") /\ IsActive(Event.node)
  /\ \A f \in Event.floors : f[2] <= Floor(<<f[1], 1>>)
  /\ Set(Event.node, [ctl[Event.node] EXCEPT !.floors =
       [l \in Lives |-> Max({@[l]} \cup {f[2] : f \in {g \in Event.floors : g[1] = l[1]}})]])
  /\ UNCHANGED <<zk, pipe, acks, net, clients, budget, ghosts, seen>>

\* An outcome is pruned below the floor, or when its broker's process is gone: then it has finished
\* all requests that it has sent.
IsOver(n, l) ==
  \A r \in Requests : (LifeOf(r) = l /\ truths[r] # {}) => IsFinished(r) /\ r \notin Running(n)
MayBePruned(n, r) == Request[r].seq < ctl[n].floors[LifeOf(r)] \/ IsOver(n, LifeOf(r))

\* `writes` and `pruned`: what ZooKeeper's log says about the multi; `isApplied` is FALSE if it has
\* none.
SentMulti ==
  /\ Takes("commit_sent") /\ IsActive(Event.node) /\ ctl[Event.node].epoch = Event.epoch
  /\ {r \in Event.pruned : ~MayBePruned(Event.node, r)} = {}
  /\ LET c == ctl[Event.node]
         pruned == {<<r, Request[r].seq >= c.floors[LifeOf(r)]>> : r \in Event.pruned}
     IN \E count \in 0..Len(c.todo) :
          LET multi == Multi(Event.node, SubSeq(c.todo, 1, count), pruned) IN
          /\ multi.num = Event.num
          /\ Event.isApplied => Range(multi.writes) = Event.writes
          /\ Send(Event.node, multi, SubSeq(c.todo, count + 1, Len(c.todo)))
  /\ UNCHANGED <<zk, acks, net, clients, budget, ghosts, seen>>

Unknown ==
  /\ Takes("commit_unknown")
  /\ LET c == ctl[Event.node] IN
     /\ IsActive(Event.node) /\ c.flight # <<>> /\ Head(c.flight).state = "unknown"
     /\ Head(c.flight).multi.num = Event.num
  /\ noted' = noted \cup {Event.node} /\ UNCHANGED <<vars, queued, attempts, replies, replied>>

\* Silent: the connection breaks before a commit_unknown.
Broke == /\ Silent /\ UNCHANGED seen
         /\ \E n \in Nodes, kept \in 0..20 :
              /\ n \notin noted /\ NextIs("commit_unknown", n)
              /\ ctl[n].epoch > 0 /\ ctl[n].flight # <<>> /\ Head(ctl[n].flight).state # "unknown"
              /\ ConnectionLost(n, kept)

\* Silent: the multi is sent again.
Resent == /\ Silent /\ UNCHANGED <<queued, attempts, replies, replied>>
          /\ \E n \in noted : CommitUnknown(n) /\ noted' = noted \ {n}

\* In a whole run, a multi is rejected just before the entry that needs its result or its place.
IsNeeded(e) ==
  \/ zat < Len(slice.commits) /\ Commit.kind = "committed" /\ Commit.epoch = e
  \/ at < Len(slice.events) /\ Event.kind = "commit_acknowledged" /\ ctl[Event.node].epoch = e

\* Silent: ZooKeeper rejects a multi.
Refused == /\ Silent /\ UNCHANGED seen
           /\ \E e \in Epochs : /\ pipe[e] # <<>> /\ (IsWhole => IsNeeded(e))
                                /\ Verdict(e, Head(pipe[e]).multi) # "ok"
                                /\ Applied(e)

Acknowledged ==
  /\ Takes("commit_acknowledged") /\ IsActive(Event.node)
  /\ ctl[Event.node].flight # <<>> /\ Head(ctl[Event.node].flight).multi.num = Event.num
  /\ Event.zxid = Event.logged       \* the zxid in ZooKeeper's log
  /\ CommitAcknowledged(Event.node) /\ UNCHANGED seen

\* An error about a topic that exists does not rest on a creation that is not committed.
RestsOnCommits(n, errors) ==
  LET open == Range(ctl[n].todo) \cup UNION {Range(m.multi.writes) : m \in Range(ctl[n].flight)}
  IN {w \in open : w[2] \in DOMAIN errors /\ errors[w[2]] = "exists"} = {}

Decided ==
  /\ Takes("request_decided") /\ ctl[Event.node].epoch = Event.epoch /\ AllAreTaken
  /\ RequestDecided(Event.node, Event.req)
  /\ ctl[Event.node].decided[Event.req] = Event.errors
  /\ IsWhole => RestsOnCommits(Event.node, Event.errors)
  /\ replies' = replies \cup {<<Event.req, Event.digest>>}
  /\ UNCHANGED <<queued, attempts, noted, replied>>

\* NOT_CONTROLLER, or no reply at all: the broker gives up the attempt.
Lost ==
  /\ Takes("forward_lost") /\ Event.attempt = attempt[Event.req]
  /\ GivenUp({Event.req}) /\ late' = late \ {Event.req}
  /\ lost' = [lost EXCEPT ![Event.req] = Event.attempt]
  /\ UNCHANGED <<zk, pipe, acks, ctl, clients, budget, ghosts, queued, attempt, replies,
                 noted, replied>>

\* Silent: the deadline passes at the controller, which has no event for it.
Overdue == /\ Silent /\ UNCHANGED seen
           /\ at < Len(slice.events) /\ Event.kind = "forward_replied" /\ Event.timedOut
           /\ \E n \in Nodes : DeadlinePassed(n, Event.req)

\* Silent: ZooKeeper was silent, so another controller may be active. The controller replies
\* NOT_CONTROLLER to a request that is committed, which has no event. The resend is executed again.
Withheld ==
  /\ Silent /\ UNCHANGED seen
  /\ IsWhole /\ at < Len(slice.events) /\ Event.kind = "execution_started"
  /\ LET c == ctl[Event.node] IN
     /\ IsActive(Event.node) /\ Event.req \in DOMAIN c.decided
     /\ c.flight = <<>> /\ \A w \in Range(c.todo) : w[1] # Event.req
     /\ Set(Event.node, [c EXCEPT !.decided = [q \in DOMAIN @ \ {Event.req} |-> @[q]]])
  /\ UNCHANGED <<zk, pipe, acks, net, clients, budget, ghosts>>

Replied ==
  /\ Takes("forward_replied") /\ Event.attempt = attempt[Event.req]
  /\ \E p \in resp :
       /\ p.req = Event.req
       /\ IF Event.timedOut THEN p.end.how = "timed out"
          ELSE IF Event.isFinal THEN p.end.how = "rejected"
          ELSE p.end.how = "answered" /\ <<Event.req, Event.digest>> \in replies
  /\ replied' = replied \cup {Event.req}
  /\ UNCHANGED <<vars, queued, attempts, replies, noted>>

Answered ==
  /\ Takes("responded")
  /\ IF Event.timedOut THEN TimedOut(Event.req)
     ELSE Event.req \in replied /\ Responded(Event.req)
  /\ UNCHANGED seen

-------------------------------------------------------------------------------
TraceNext ==
  \/ Elected \/ Ended \/ OwnerDeleted \/ Skipped \/ Changed \/ Committed
  \/ TookOffice \/ LeftOffice \/ Restarted \/ Former \/ Sent \/ Arrived \/ Taken \/ Rejected \/ Informed
  \/ Conflicted \/ Started \/ FloorsReported \/ SentMulti \/ Unknown \/ Broke \/ Resent \/ Refused
  \/ Acknowledged \/ Decided \/ Lost \/ Overdue \/ Withheld \/ Replied \/ Answered

TraceSpec == TraceInit /\ [][TraceNext]_traceVars

IsExplained == at = Len(slice.events) /\ zat = Len(slice.commits)

\* Always true: reports how far the slices got.
IsReported == IsExplained => PrintT(<<"explained", slice.number>>)
IsLocated == PrintT(<<"place", slice.number, at, zat>>)
===============================================================================
