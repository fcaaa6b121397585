--------------------------------- MODULE Trace ---------------------------------
(* Explains recorded runs by behaviours of Forwarding.tla. judge/spec writes the  *)
(* slices: each is the history of one request, or of commits of one term, as two  *)
(* sequences: the events of the nodes of a host, in the order of its clock, and   *)
(* ZooKeeper's transactions, in the order of zxids. A step takes the next entry   *)
(* of one of them. Steps without an entry are: an Envelope is taken from the      *)
(* queue, a connection breaks, a multi is sent again, ZooKeeper rejects a multi,  *)
(* a deadline passes at the controller.                                           *)
EXTENDS Forwarding, Integers

CONSTANTS Slices   \* a set of [number, events, commits]
VARIABLES slice,   \* one of them; it never changes
          at,      \* how many events are explained
          zat,     \* how many transactions are explained
          queued,  \* Envelopes that arrived, [node, attempt], not taken yet
          attempt, \* the number of the latest attempt
          lost,    \* the number of the latest attempt that ended without a response
          replies, \* digests of the responses that controllers decided
          noted,   \* nodes whose last commit_unknown is not followed by a resend yet
          replied  \* whether the broker has a response

attempts == <<attempt, lost>>
seen == <<queued, attempts, replies, noted, replied>>
traceVars == <<vars, slice, at, zat, seen>>

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
  /\ queued = {} /\ attempt = 0 /\ lost = 0 /\ replies = {} /\ noted = {} /\ replied = FALSE

-------------------------------------------------------------------------------
\* ZooKeeper's transactions.

Elected == /\ TakesCommit("elected") /\ ClaimSent(Commit.node) /\ zk'.epoch = Commit.epoch

Ended == TakesCommit("ended") /\ SessionEnded(Commit.epoch)

OwnerDeleted == TakesCommit("deleted") /\ ControllerZnodeDeleted

\* Commits that are not part of the slice: of other requests, of background work.
Skipped == /\ TakesCommit("skipped")
           /\ zk' = [zk EXCEPT !.counter = Commit.num]
           /\ UNCHANGED <<pipe, acks, ctl, net, clients, budget, ghosts>>

\* Another request, or another program, changed the element.
Changed == /\ TakesCommit("changed")
           /\ zk' = [zk EXCEPT !.exists = [t \in Topics |-> IF t \in Commit.topics
                                                            THEN Commit.exists ELSE @[t]]]
           /\ UNCHANGED <<pipe, acks, ctl, net, clients, budget, ghosts>>

Committed ==
  /\ TakesCommit("committed") /\ pipe[Commit.epoch] # <<>>
  /\ LET multi == Head(pipe[Commit.epoch]).multi IN
     /\ multi.num = Commit.num /\ {w[2] : w \in Range(multi.writes)} = Commit.topics
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

Sent == /\ Takes("forward_sent") /\ ForwardSent(1) /\ Event.attempt = attempt + 1 /\ lost = attempt
        /\ attempt' = Event.attempt /\ UNCHANGED <<queued, lost, replies, noted, replied>>

Arrived == /\ Takes("envelope_received") /\ Event.attempt \in 1..attempt
           /\ queued' = queued \cup {[node |-> Event.node, attempt |-> Event.attempt]}
           /\ UNCHANGED <<vars, attempts, replies, noted, replied>>

\* Silent: the controller takes an Envelope.
Taken ==
  /\ Silent
  /\ \E q \in queued :
       /\ queued' = queued \ {q}
       /\ LET isLate == q.attempt < attempt \/ waits[1] # OnItsWay IN
          IF isLate /\ 1 \notin late
            THEN /\ IsActive(q.node)
                 /\ Set(q.node, [ctl[q.node] EXCEPT !.inbox = IF 1 \in Running(q.node) THEN @
                                                              ELSE @ \cup {1}])
                 /\ UNCHANGED <<zk, pipe, acks, net, clients, budget, ghosts>>
          ELSE EnvelopeReceived(q.node, 1, isLate)
  /\ UNCHANGED <<attempts, replies, noted, replied>>

\* NOT_CONTROLLER ends the attempt; any other error ends the request.
Rejected ==
  /\ Takes("envelope_rejected")
  /\ \E q \in queued : q.node = Event.node /\ queued' = queued \ {q}
  /\ IF Event.isFinal
       THEN /\ waits' = [waits EXCEPT ![1] = IF @ = Idle THEN Idle ELSE EpochMax]
            /\ resp' = resp \cup {[req |-> 1, end |-> EndedBy("rejected")]}
     ELSE UNCHANGED <<waits, resp>>
  /\ UNCHANGED <<zk, pipe, acks, ctl, late, clients, budget, ghosts, attempts, replies,
                 noted, replied>>

\* What the slice leaves out: the counter and the topics that this decision is made on.
Informed ==
  /\ Takes("informed") /\ IsActive(Event.node)
  /\ \E exists \in [Topics -> BOOLEAN] :
       /\ \A t \in Topics : exists[t] \in Event.may[t]
       /\ Set(Event.node, [ctl[Event.node] EXCEPT
                !.exists = exists,
                !.counter = IF Event.num < 0 THEN @ ELSE Event.num])
  /\ UNCHANGED <<zk, pipe, acks, net, clients, budget, ghosts, seen>>

\* The multi conflicted with another program's write: the request is decided again.
Conflicted ==
  /\ Takes("conflicted")
  /\ LET c == ctl[Event.node] IN
     /\ IsActive(Event.node) /\ 1 \in DOMAIN c.decided
     /\ Set(Event.node, [c EXCEPT !.flight = <<>>, !.todo = <<>>, !.inbox = {1},
                                  !.decided = <<>>])
     /\ pipe' = [pipe EXCEPT ![c.epoch] = <<>>] /\ acks' = [acks EXCEPT ![c.epoch] = <<>>]
  /\ UNCHANGED <<zk, net, clients, budget, ghosts, seen>>

Started ==
  /\ Takes("execution_started") /\ ctl[Event.node].epoch = Event.epoch
  /\ ExecutionStarted(Event.node, 1)
  /\ \A t \in Topics : Event.errors[t] # "?" => ctl'[Event.node].decided[1][t] = Event.errors[t]
  /\ UNCHANGED seen

\* `topics`: what ZooKeeper's log says about the multi; `isApplied` is FALSE if it has none.
SentMulti ==
  /\ Takes("commit_sent") /\ IsActive(Event.node) /\ ctl[Event.node].epoch = Event.epoch
  /\ LET c == ctl[Event.node] IN
     \E count \in 0..Len(c.todo) :
       LET writes == SubSeq(c.todo, 1, count)
           multi == Multi(Event.node, writes, {})
       IN /\ multi.num = Event.num
          /\ Event.isApplied => {w[2] : w \in Range(writes)} = Event.topics
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

\* Silent: ZooKeeper rejects a multi.
Refused == /\ Silent /\ UNCHANGED seen
           /\ \E e \in Epochs : /\ pipe[e] # <<>> /\ Verdict(e, Head(pipe[e]).multi) # "ok"
                                /\ Applied(e)

Acknowledged ==
  /\ Takes("commit_acknowledged") /\ IsActive(Event.node)
  /\ ctl[Event.node].flight # <<>> /\ Head(ctl[Event.node].flight).multi.num = Event.num
  /\ Event.zxid = Event.logged       \* the zxid in ZooKeeper's log
  /\ CommitAcknowledged(Event.node) /\ UNCHANGED seen

Decided ==
  /\ Takes("request_decided") /\ ctl[Event.node].epoch = Event.epoch
  /\ RequestDecided(Event.node, 1)
  /\ ctl[Event.node].decided[1] = Event.errors
  /\ replies' = replies \cup {Event.digest} /\ UNCHANGED <<queued, attempts, noted, replied>>

\* NOT_CONTROLLER, or no reply at all: the broker gives up the attempt.
Lost ==
  /\ Takes("forward_lost") /\ Event.attempt = attempt
  /\ GivenUp({1}) /\ late' = late \ {1} /\ lost' = attempt
  /\ UNCHANGED <<zk, pipe, acks, ctl, clients, budget, ghosts, queued, attempt, replies,
                 noted, replied>>

\* Silent: the deadline passes at the controller, which has no event for it.
Overdue == /\ Silent /\ UNCHANGED seen
           /\ at < Len(slice.events) /\ Event.kind = "forward_replied" /\ Event.timedOut
           /\ \E n \in Nodes : DeadlinePassed(n, 1)

Replied ==
  /\ Takes("forward_replied") /\ Event.attempt = attempt
  /\ \E p \in resp : IF Event.timedOut THEN p.end.how = "timed out"
                     ELSE IF Event.isFinal THEN p.end.how = "rejected"
                     ELSE p.end.how = "answered" /\ Event.digest \in replies
  /\ replied' = TRUE /\ UNCHANGED <<vars, queued, attempts, replies, noted>>

Answered ==
  /\ Takes("responded")
  /\ IF Event.timedOut THEN TimedOut(1) ELSE replied /\ Responded(1)
  /\ UNCHANGED seen

-------------------------------------------------------------------------------
TraceNext ==
  \/ Elected \/ Ended \/ OwnerDeleted \/ Skipped \/ Changed \/ Committed
  \/ TookOffice \/ LeftOffice \/ Restarted \/ Former \/ Sent \/ Arrived \/ Taken \/ Rejected \/ Informed
  \/ Conflicted \/ Started \/ SentMulti \/ Unknown \/ Broke \/ Resent \/ Refused \/ Acknowledged
  \/ Decided \/ Lost \/ Overdue \/ Replied \/ Answered

TraceSpec == TraceInit /\ [][TraceNext]_traceVars

IsExplained == at = Len(slice.events) /\ zat = Len(slice.commits)

\* Always true: reports how far the slices got.
IsReported == IsExplained => PrintT(<<"explained", slice.number>>)
IsLocated == PrintT(<<"place", slice.number, at, zat>>)
===============================================================================
