------------------------------ MODULE Forwarding ------------------------------
(* KIP-590 forwarding to a controller that ZooKeeper elects: every write takes   *)
(* effect at most once, whatever fails. docs/adr/0003-exactly-once.md says why.  *)
(*                                                                               *)
(* A node is a broker and a candidate for controller. Actions have the names of  *)
(* the events in docs/events.md where an event exists. A constant in capitals is *)
(* one protective part; FALSE leaves it out (spec/models.py: CONTROLS).          *)
EXTENDS Naturals, Sequences, FiniteSets, TLC

CONSTANTS
  Nodes,
  Topics,
  Requests,      \* the numbers of the requests
  Request,       \* what each is: [node, life, seq, after, kind, topics]
  EpochMax,      \* the number of elections
  Budget,        \* how many faults of each kind happen
  Reports,       \* TRUE: brokers report floors, and controllers prune outcomes
  Blocks,        \* TRUE: bridgehead.metadata.blocking=cluster
  Observed,      \* TRUE: a recorded run; elements may be rejected, or need no write
  Deadlines,     \* TRUE: a broker may give up a request
  FENCE,         \* operation 0 of a multi checks the epoch
  COUNTER,       \* operation 1 of a multi sets the commit counter
  OUTCOMES,      \* a new controller loads the outcomes
  ATTEMPTS,      \* a broker ignores the response to an attempt that it has given up
  JOINS,         \* a resend of a request in progress waits for the first copy
  RESENDS,       \* a multi without reply is sent again; FALSE: it counts as applied
  ONE_ROUND,     \* no reply before all multis of the round are committed
  LIVES,         \* a request's identity has the incarnation of its broker
  LOWEST,        \* a floor is the lowest unfinished sequence; FALSE: above the highest finished
  STORES_FLOORS, \* the multi that prunes outcomes also stores the floor
  FLOOR_CHECKED, \* the floor is also checked when a request is decided
  GRACE,         \* outcomes of an unregistered broker are kept while resends may arrive
  LEASE,         \* no reply once the session has ended
  WAITS,         \* a connection's next request waits for the response to the one before
  APPLIED        \* with Blocks: no success before every registered broker knows the change

VARIABLES
  zk,      \* ZooKeeper, which is linearizable: one value
  pipe,    \* for each epoch (one session each): multis on their way to ZooKeeper, in order
  acks,    \* for each epoch: replies on their way back, in order
  ctl,     \* the controller of each node
  waits,   \* for each request its latest attempt: Idle, OnItsWay, or the epoch that received it
  late,    \* requests with an Envelope on its way that belongs to an attempt given up
  resp,    \* responses on their way to brokers
  result,  \* for each request: how it ended for the client
  life,    \* the incarnation of each broker's process
  brokers, \* for each broker: the commit it has applied, and whether it answers reads
  budget,  \* faults left
  log,     \* ghost: the effects of requests, in the order of commits
  truths   \* ghost: for each request the states of topics since it was first sent

vars == <<zk, pipe, acks, ctl, waits, late, resp, result, life, brokers,
          budget, log, truths>>
ghosts == <<log, truths>>
net == <<waits, late, resp>>
clients == <<result, life, brokers>>

EndedBy(how) == [how |-> how, errors |-> <<>>]
Open == EndedBy("in progress")
Standby == [epoch |-> 0]
Epochs == 1..EpochMax
Idle == 0
OnItsWay == EpochMax + 1
Lives == {<<Request[r].node, Request[r].life>> : r \in Requests}
LifeOf(r) == <<Request[r].node, Request[r].life>>
Range(s) == {s[i] : i \in DOMAIN s}
Max(numbers) == CHOOSE m \in numbers : \A o \in numbers : o <= m
Min(numbers) == CHOOSE m \in numbers : \A o \in numbers : m <= o

\* A request's identity: resends have the same one, and no other request may have it.
Id(r) == <<Request[r].node, IF LIVES THEN Request[r].life ELSE 0, Request[r].seq>>

\* Request[r].topics is a sequence: multis take the elements in this order.
Elements(r) == Range(Request[r].topics)
Writes(r) == [i \in DOMAIN Request[r].topics |-> <<r, Request[r].topics[i]>>]

\* What the controller may decide about one topic. "ok" needs a write. In a recorded run "rejected"
\* is any other error, and "same" a success that needs no write.
Errors == {"ok", "exists", "unknown", "rejected", "same"}
Decisions(kind, exists) ==
  (IF Observed THEN {"rejected", "same"} ELSE {}) \cup
  CASE kind = "create" -> IF exists THEN {"exists"} ELSE {"ok"}
    [] kind = "delete" -> IF exists THEN {"ok"} ELSE {"unknown"}
    [] OTHER -> {"ok"}                                \* such as a change of configs

After(kind, exists) == CASE kind = "create" -> TRUE [] kind = "delete" -> FALSE [] OTHER -> exists
Conflicts(kind, exists) == (kind = "create" /\ exists) \/ (kind = "delete" /\ ~exists)

IsFinished(r) == result[r].how # "in progress"
IsActive(n) == ctl[n].epoch > 0 /\ ctl[n].loaded
Running(n) == ctl[n].inbox \cup DOMAIN ctl[n].decided
Set(n, record) == ctl' = [ctl EXCEPT ![n] = record]

Init ==
  /\ zk = [epoch |-> 0,                         \* /controller_epoch
           owner |-> 0,                         \* of /controller, by its epoch; 0: no controller
           ended |-> {},                        \* the epochs whose sessions have ended
           counter |-> 0,                       \* /bridgehead/commit
           exists |-> [t \in Topics |-> FALSE],
           outcomes |-> {},                     \* of elements: <<Id(r), topic>>
           floors |-> [l \in Lives |-> 0],
           lives |-> [n \in Nodes |-> 1]]       \* /brokers/ids: incarnations; 0: not registered
  /\ pipe = [e \in Epochs |-> <<>>] /\ acks = [e \in Epochs |-> <<>>]
  /\ ctl = [n \in Nodes |-> Standby]
  /\ waits = [r \in Requests |-> Idle] /\ late = {} /\ resp = {} /\ result = [r \in Requests |-> Open]
  /\ life = [n \in Nodes |-> 1] /\ brokers = [n \in Nodes |-> [applied |-> 0, reads |-> FALSE]]
  /\ budget = Budget /\ log = <<>> /\ truths = [r \in Requests |-> {}]

Spend(fault) == /\ budget[fault] > 0
                /\ budget' = [budget EXCEPT ![fault] = @ - 1]

\* A recorded run is only asked whether a request was sent.
Facts(exists) == IF Observed THEN {"sent"} ELSE {<<t, exists[t]>> : t \in Topics}

\* Attempts end without a response: the broker will resend, and no reply to them arrives.
GivenUp(attempts) ==
  /\ waits' = [r \in Requests |-> IF r \in attempts THEN Idle ELSE waits[r]]
  /\ resp' = IF ATTEMPTS THEN {p \in resp : p.req \notin attempts} ELSE resp

-------------------------------------------------------------------------------
\* Elections. Those of a model end: the controller of EpochMax stays, so that requests can end.

\* The multi that creates /controller and sets the epoch. The former controller may not notice.
ClaimSent(n) ==
  /\ ctl[n] = Standby /\ zk.owner = 0 /\ zk.epoch < EpochMax
  /\ zk' = [zk EXCEPT !.epoch = @ + 1, !.owner = zk.epoch + 1]
  /\ Set(n, [epoch |-> zk.epoch + 1, loaded |-> FALSE])
  /\ UNCHANGED <<pipe, acks, net, clients, budget, ghosts>>

Listed == {n \in Nodes : Blocks /\ zk.lives[n] > 0}  \* the registrations in an image read now

\* The image is read after the election: from then on only this session commits. The fields from
\* counter to listed are the image of zk; exists also has the writes that are only decided.
BecameActive(n) ==
  /\ ctl[n].epoch > 0 /\ ~ctl[n].loaded /\ ctl[n].epoch \notin zk.ended
  /\ Set(n, [epoch |-> ctl[n].epoch, loaded |-> TRUE, counter |-> zk.counter,
             exists |-> zk.exists, outcomes |-> IF OUTCOMES THEN zk.outcomes ELSE {},
             floors |-> zk.floors, lives |-> zk.lives, listed |-> Listed,
             inbox |-> {},                    \* requests received, not decided
             decided |-> <<>>,                \* results of requests without a response yet
             todo |-> <<>>,                   \* decided writes, in no multi yet
             flight |-> <<>>])                \* multis sent, in order, without a result
  /\ UNCHANGED <<zk, pipe, acks, net, clients, budget, ghosts>>

Unanswered(n) ==
  {r \in Requests : waits[r] = ctl[n].epoch /\ ctl[n].epoch > 0 /\ \A p \in resp : p.req # r}

\* For any reason. Requests in progress get NOT_CONTROLLER, so their brokers resend them.
Resigned(n) ==
  /\ ctl[n].epoch \in 1..(EpochMax - 1)
  /\ Set(n, Standby)
  /\ GivenUp(Unanswered(n))
  /\ UNCHANGED <<zk, pipe, acks, late, clients, budget, ghosts>>

\* A session ends: closed, expired, or ended by another client. Its owner may not know.
SessionEnded(e) ==
  /\ e < EpochMax /\ e <= zk.epoch /\ e \notin zk.ended
  /\ zk' = [zk EXCEPT !.ended = @ \cup {e}, !.owner = IF @ = e THEN 0 ELSE @]
  /\ UNCHANGED <<pipe, acks, ctl, net, clients, budget, ghosts>>

\* Another client deletes /controller. The session of the controller lives on.
ControllerZnodeDeleted ==
  /\ zk.owner \in 1..(EpochMax - 1) /\ Spend("deletions")
  /\ zk' = [zk EXCEPT !.owner = 0]
  /\ UNCHANGED <<pipe, acks, ctl, net, clients, ghosts>>

-------------------------------------------------------------------------------
\* From the client to the decision.

\* The first attempt, or a resend: the broker does not know whether an earlier copy was executed.
\* A request of the controller's own broker takes the same way.
ForwardSent(r) ==
  LET q == Request[r] IN
  /\ ~IsFinished(r) /\ life[q.node] = q.life /\ waits[r] = Idle
  /\ IF WAITS /\ q.after # 0 THEN IsFinished(q.after) ELSE TRUE
  /\ waits' = [waits EXCEPT ![r] = OnItsWay]
  /\ truths' = IF truths[r] = {} THEN [truths EXCEPT ![r] = Facts(zk.exists)] ELSE truths
  /\ UNCHANGED <<zk, pipe, acks, ctl, late, resp, clients, budget, log>>

\* The channel breaks: the Envelope is lost, or the response, or the broker does not learn that the
\* controller works on the request.
ChannelBroken(r) ==
  /\ waits[r] # Idle /\ ~IsFinished(r) /\ Spend("breaks")
  /\ GivenUp({r})
  /\ UNCHANGED <<zk, pipe, acks, ctl, late, clients, ghosts>>

\* As above, but the Envelope is still on its way, and arrives at any later time.
EnvelopeDelayed(r) ==
  /\ waits[r] = OnItsWay /\ Spend("delays")
  /\ GivenUp({r})
  /\ late' = late \cup {r}
  /\ UNCHANGED <<zk, pipe, acks, ctl, clients, ghosts>>

\* A response reaches the broker only if the latest attempt was received in the same term. The action
\* that uses this determines waits' before.
Response(n, r, end) ==
  IF ATTEMPTS => waits'[r] = ctl[n].epoch THEN resp \cup {[req |-> r, end |-> end]} ELSE resp

\* It is queued, or joins a copy in progress, or is rejected.
EnvelopeReceived(n, r, isLate) ==
  LET c == ctl[n]
      isKnown == c.lives[Request[r].node] = Request[r].life
  IN
  /\ IsActive(n) /\ IF isLate THEN r \in late ELSE waits[r] = OnItsWay
  /\ late' = IF isLate THEN late \ {r} ELSE late
  /\ waits' = IF isLate THEN waits ELSE [waits EXCEPT ![r] = IF isKnown THEN c.epoch ELSE Idle]
  /\ IF ~isKnown THEN UNCHANGED <<ctl, resp>>          \* NOT_CONTROLLER: the broker resends
     ELSE IF Request[r].seq < c.floors[LifeOf(r)]       \* envelope_rejected
       THEN resp' = Response(n, r, EndedBy("rejected")) /\ UNCHANGED ctl
     ELSE IF JOINS /\ r \in Running(n)
       THEN UNCHANGED <<ctl, resp>>
     ELSE Set(n, [c EXCEPT !.inbox = @ \cup {r}]) /\ UNCHANGED resp
  /\ UNCHANGED <<zk, pipe, acks, clients, budget, ghosts>>

\* Between the arrival and the decision of a late copy, its broker may have finished the request.
IsTooLate(n, r) == FLOOR_CHECKED /\ Request[r].seq < ctl[n].floors[LifeOf(r)]

DecidedTooLate(n, r) ==
  /\ IsActive(n) /\ r \in ctl[n].inbox /\ IsTooLate(n, r)
  /\ Set(n, [ctl[n] EXCEPT !.inbox = @ \ {r}])
  /\ UNCHANGED <<zk, pipe, acks, net, clients, budget, ghosts>>

\* Each element is decided on an image with the writes decided before it. An element that has an
\* outcome is not decided again. Requests are decided in rounds: no multi is in flight.
ExecutionStarted(n, r, results) ==
  LET c == ctl[n]
      IsDone(t) == <<Id(r), t>> \in c.outcomes
      IsWritten(w) == results[w[2]] = "ok" /\ ~IsDone(w[2])
      more == SelectSeq(Writes(r), IsWritten)
      written == {w[2] : w \in Range(more)}
  IN
  /\ IsActive(n) /\ r \in c.inbox /\ c.flight = <<>>
  /\ ~IsTooLate(n, r)
  /\ \A t \in Elements(r) :
       results[t] \in IF IsDone(t) THEN {"ok"} ELSE Decisions(Request[r].kind, c.exists[t])
  /\ Set(n, [c EXCEPT
       !.inbox = @ \ {r},
       !.decided = (r :> results) @@ @,
       !.todo = @ \o more,
       !.exists = [t \in Topics |-> IF t \in written THEN After(Request[r].kind, @[t]) ELSE @[t]]])
  /\ UNCHANGED <<zk, pipe, acks, net, clients, budget, ghosts>>

Execution(n, r) == \E results \in [Elements(r) -> Errors] : ExecutionStarted(n, r, results)

-------------------------------------------------------------------------------
\* Multis. Operation 0 checks the epoch, operation 1 sets the counter; then come the outcomes of the
\* elements and their effects. All of it is applied, or nothing.

\* num: the counter's new value. writes: elements in order, <<request, topic>>. pruned: requests
\* whose outcomes are deleted, <<request, whether its life is gone>>.
Multi(n, writes, pruned) ==
  [num |-> ctl[n].counter + Len(ctl[n].flight) + 1, writes |-> writes, pruned |-> pruned]

Send(n, multi, todo) ==
  /\ Set(n, [ctl[n] EXCEPT !.todo = todo, !.flight = Append(@, [multi |-> multi, state |-> "sent"])])
  /\ pipe' = [pipe EXCEPT ![ctl[n].epoch] = Append(@, [multi |-> multi, heard |-> TRUE])]

\* The elements of a request may need several multis, and a multi may have several requests.
CommitSent(n, count) ==
  /\ IsActive(n) /\ count \in 1..Len(ctl[n].todo)
  /\ Send(n, Multi(n, SubSeq(ctl[n].todo, 1, count), {}),
          SubSeq(ctl[n].todo, count + 1, Len(ctl[n].todo)))
  /\ UNCHANGED <<zk, acks, net, clients, budget, ghosts>>

\* Whether a topic exists after the first `count` writes of a multi.
ExistsAfter(multi, count, t) ==
  LET Changes(i) == multi.writes[i][2] = t /\ Request[multi.writes[i][1]].kind \in {"create", "delete"}
      changes == {i \in 1..count : Changes(i)}
  IN IF changes = {} THEN zk.exists[t] ELSE Request[multi.writes[Max(changes)][1]].kind = "create"

Verdict(e, multi) ==
  IF e \in zk.ended THEN "expired"
  ELSE IF FENCE /\ e # zk.epoch THEN "fenced"
  ELSE IF COUNTER /\ multi.num # zk.counter + 1 THEN "counted"
  ELSE IF \E i \in DOMAIN multi.writes :
            LET w == multi.writes[i] IN
            Conflicts(Request[w[1]].kind, ExistsAfter(multi, i - 1, w[2]))
    THEN "conflict"
  ELSE "ok"

\* ZooKeeper processes the next multi of a session.
Applied(e) ==
  /\ pipe[e] # <<>>
  /\ LET multi == Head(pipe[e]).multi
         verdict == Verdict(e, multi)
         exists == [t \in Topics |-> ExistsAfter(multi, Len(multi.writes), t)]
         finished == {Id(p[1]) : p \in multi.pruned}
     IN
     /\ pipe' = [pipe EXCEPT ![e] = Tail(@)]
     /\ acks' = IF Head(pipe[e]).heard THEN [acks EXCEPT ![e] = Append(@, verdict)] ELSE acks
     /\ IF verdict = "ok"
          THEN /\ zk' = [zk EXCEPT
                    !.counter = multi.num,
                    !.exists = exists,
                    !.outcomes = {o \in @ : o[1] \notin finished}
                                 \cup {<<Id(w[1]), w[2]>> : w \in Range(multi.writes)},
                    !.floors = [l \in Lives |->
                       LET mine == {p \in multi.pruned : LifeOf(p[1]) = l /\ ~p[2]}
                           seqs == {Request[p[1]].seq + 1 : p \in mine}
                       IN IF STORES_FLOORS THEN Max(seqs \cup {@[l]}) ELSE @[l]]]
               /\ log' = log \o [i \in DOMAIN multi.writes |->
                            [req |-> multi.writes[i][1], topic |-> multi.writes[i][2],
                             num |-> multi.num, late |-> e # zk.epoch]]
               /\ truths' = [r \in Requests |-> IF truths[r] = {} \/ IsFinished(r) THEN truths[r]
                                                ELSE truths[r] \cup Facts(exists)]
          ELSE UNCHANGED <<zk, ghosts>>
  /\ UNCHANGED <<ctl, net, clients, budget>>

\* The connection to ZooKeeper breaks: replies are lost, and the requests behind some point. The
\* others may still be applied, even after the next connection is open.
ConnectionLost(n, kept) ==
  LET c == ctl[n] IN
  /\ IsActive(n) /\ c.flight # <<>> /\ kept \in 0..Len(pipe[c.epoch]) /\ Spend("losses")
  /\ pipe' = [pipe EXCEPT ![c.epoch] =
                [i \in 1..kept |-> [multi |-> @[i].multi, heard |-> FALSE]]]
  /\ acks' = [acks EXCEPT ![c.epoch] = <<>>]
  /\ Set(n, [c EXCEPT !.flight = [i \in DOMAIN @ |-> [multi |-> @[i].multi, state |-> "unknown"]]])
  /\ UNCHANGED <<zk, net, clients, ghosts>>

\* The same multi is sent again. Its result says what became of the first copy.
CommitUnknown(n) ==
  LET c == ctl[n] IN
  /\ RESENDS /\ IsActive(n) /\ c.flight # <<>> /\ Head(c.flight).state = "unknown"
  /\ pipe' = [pipe EXCEPT ![c.epoch] = Append(@, [multi |-> Head(c.flight).multi, heard |-> TRUE])]
  /\ Set(n, [c EXCEPT !.flight[1].state = "resent"])
  /\ UNCHANGED <<zk, acks, net, clients, budget, ghosts>>

Learned(c, multi) ==
  LET finished == {Id(p[1]) : p \in multi.pruned} IN
  [c EXCEPT !.counter = multi.num, !.flight = Tail(@),
            !.outcomes = {o \in @ : o[1] \notin finished}
                         \cup {<<Id(w[1]), w[2]>> : w \in Range(multi.writes)}]

\* The multi is committed: ZooKeeper says so, or the counter shows that the first copy was applied.
CommitAcknowledged(n) ==
  LET c == ctl[n] IN
  /\ IsActive(n) /\ c.flight # <<>>
  /\ \/ /\ acks[c.epoch] # <<>>
        /\ \/ Head(acks[c.epoch]) = "ok"
           \/ Head(acks[c.epoch]) = "counted" /\ Head(c.flight).state = "resent"
        /\ acks' = [acks EXCEPT ![c.epoch] = Tail(@)]
     \/ ~RESENDS /\ Head(c.flight).state = "unknown" /\ UNCHANGED acks
  /\ Set(n, Learned(c, Head(c.flight).multi))
  /\ UNCHANGED <<zk, pipe, net, clients, budget, ghosts>>

\* Another program wrote something else. All later multis failed, too: the counter did not change.
\* The image is read again, and what is not committed is decided again.
CommitConflicted(n) ==
  LET c == ctl[n] IN
  /\ IsActive(n) /\ c.flight # <<>> /\ Len(acks[c.epoch]) = Len(c.flight)
  /\ Head(acks[c.epoch]) = "conflict"
  /\ acks' = [acks EXCEPT ![c.epoch] = <<>>]
  /\ Set(n, [c EXCEPT !.flight = <<>>, !.todo = <<>>, !.exists = zk.exists,
                      !.inbox = @ \cup DOMAIN c.decided, !.decided = <<>>])
  /\ UNCHANGED <<zk, pipe, net, clients, budget, ghosts>>

\* Every other result: another controller is or may be active.
MustResign(n) ==
  LET c == ctl[n] IN
  /\ c.epoch > 0
  /\ \/ IsActive(n) /\ c.flight # <<>> /\ acks[c.epoch] # <<>>
        /\ \/ Head(acks[c.epoch]) \in {"fenced", "expired"}
           \/ Head(acks[c.epoch]) = "counted" /\ Head(c.flight).state # "resent"
     \/ c.epoch \in zk.ended     \* it learns that its session ended
     \/ c.epoch < zk.epoch       \* its watch of /controller fires

-------------------------------------------------------------------------------
\* From the commit to the client.

\* A round ends when all of its multis are committed: an error may rest on a write before it.
RequestDecided(n, r) ==
  LET c == ctl[n] IN
  /\ IsActive(n) /\ r \in DOMAIN c.decided
  /\ IF ONE_ROUND THEN c.todo = <<>> /\ c.flight = <<>>
     ELSE \A w \in Range(c.todo) \cup UNION {Range(m.multi.writes) : m \in Range(c.flight)} :
            w[1] # r
  /\ LEASE => c.epoch \notin zk.ended
  /\ (Blocks /\ APPLIED) => \A b \in Nodes : c.lives[b] > 0 => brokers[b].applied >= c.counter
  /\ UNCHANGED <<waits, late>>
  /\ resp' = Response(n, r, [how |-> "answered", errors |-> c.decided[r]])
  /\ Set(n, [c EXCEPT !.decided = [q \in DOMAIN @ \ {r} |-> @[q]]])
  /\ UNCHANGED <<zk, pipe, acks, clients, budget, ghosts>>

\* forward_replied, responded: the response ends the request.
Responded(r) ==
  /\ \E p \in resp :
       /\ p.req = r /\ resp' = resp \ {p}
       /\ result' = IF IsFinished(r) THEN result ELSE [result EXCEPT ![r] = p.end]
  /\ waits' = [waits EXCEPT ![r] = Idle]
  /\ UNCHANGED <<zk, pipe, acks, ctl, late, life, brokers, budget, ghosts>>

TimedOut(r) ==
  /\ Deadlines /\ ~IsFinished(r) /\ truths[r] # {}
  /\ result' = [result EXCEPT ![r] = EndedBy("timed out")]
  /\ GivenUp({r})
  /\ UNCHANGED <<zk, pipe, acks, ctl, late, life, brokers, budget, ghosts>>

\* The controller has the deadline, too. It may pass before the decision, so nothing was changed, or
\* during KIP-4's wait.
DeadlinePassed(n, r) ==
  LET c == ctl[n]
      isWaiting == (Blocks \/ Observed) /\ r \in DOMAIN c.decided /\ c.todo = <<>> /\ c.flight = <<>>
  IN
  /\ Deadlines /\ IsActive(n) /\ (r \in c.inbox \/ isWaiting)
  /\ UNCHANGED <<waits, late>>
  /\ resp' = Response(n, r, EndedBy("timed out"))
  /\ Set(n, [c EXCEPT !.inbox = @ \ {r}, !.decided = [q \in DOMAIN @ \ {r} |-> @[q]]])
  /\ UNCHANGED <<zk, pipe, acks, clients, budget, ghosts>>

\* KIP-4: a broker applies the controller's updates. It answers reads after an update that lists its
\* present registration.
ImageAdvanced(n, b) ==
  /\ Blocks /\ IsActive(n)
  /\ LET c == ctl[n]
         next == [applied |-> Max({brokers[b].applied, c.counter}),
                  reads |-> brokers[b].reads \/ b \in c.listed]
     IN next # brokers[b] /\ brokers' = [brokers EXCEPT ![b] = next]
  /\ UNCHANGED <<zk, pipe, acks, ctl, net, result, life, budget, ghosts>>

-------------------------------------------------------------------------------
\* Floors: outcomes are kept until the broker has finished the request.

Floor(l) ==
  LET mine == {r \in Requests : LifeOf(r) = l}
      open == {Request[r].seq : r \in {q \in mine : ~IsFinished(q)}}
      done == {Request[r].seq : r \in {q \in mine : IsFinished(q)}}
  IN IF LOWEST /\ open # {} THEN Min(open) ELSE Max({0} \cup done) + 1

FloorReported(n, b) ==
  LET l == <<b, life[b]>> IN
  /\ Reports /\ IsActive(n) /\ l \in Lives /\ ctl[n].floors[l] < Floor(l)
  /\ Set(n, [ctl[n] EXCEPT !.floors[l] = Floor(l)])
  /\ UNCHANGED <<zk, pipe, acks, net, clients, budget, ghosts>>

\* With the grace period, a life is gone when its requests have ended and no copy is under way.
IsGone(n, l) ==
  /\ ctl[n].lives[l[1]] # l[2]
  /\ GRACE => \A r \in Requests : LifeOf(r) = l =>
       /\ IsFinished(r) /\ r \notin late
       /\ \A m \in Nodes : IsActive(m) => r \notin Running(m)

OutcomesPruned(n) ==
  LET c == ctl[n]
      Prunable(r) == /\ \E o \in c.outcomes : o[1] = Id(r)
                     /\ Request[r].seq < c.floors[LifeOf(r)] \/ IsGone(n, LifeOf(r))
      pruned == {<<r, IsGone(n, LifeOf(r))>> : r \in {q \in Requests : IsActive(n) /\ Prunable(q)}}
  IN
  /\ Reports /\ IsActive(n) /\ c.todo = <<>> /\ c.flight = <<>> /\ pruned # {}
  /\ Send(n, Multi(n, <<>>, pruned), <<>>)
  /\ UNCHANGED <<zk, acks, net, clients, budget, ghosts>>

-------------------------------------------------------------------------------
\* Faults of brokers, and writes that do not come from the controller.

\* A process is killed and starts again. Its clients' connections are closed.
NodeRestarted(b) ==
  LET lost == {r \in Requests : LifeOf(r) = <<b, life[b]>> /\ ~IsFinished(r)} IN
  /\ ctl[b].epoch < EpochMax /\ Spend("restarts")
  /\ life' = [life EXCEPT ![b] = @ + 1]
  /\ Set(b, Standby)
  /\ result' = [r \in Requests |-> IF r \in lost THEN EndedBy("gone") ELSE result[r]]
  /\ GivenUp(lost \cup Unanswered(b))
  /\ brokers' = [brokers EXCEPT ![b] = [applied |-> 0, reads |-> FALSE]]
  /\ UNCHANGED <<zk, pipe, acks, late, ghosts>>

\* The broker's session ends; the process may live on and register again. A later registration is
\* not the one that images list.
Unregistered(b) ==
  /\ zk.lives[b] > 0
  /\ IF zk.lives[b] = life[b] THEN Spend("unregistered") ELSE UNCHANGED budget
  /\ zk' = [zk EXCEPT !.lives[b] = 0]
  /\ brokers' = [brokers EXCEPT ![b].reads = FALSE]
  /\ ctl' = [n \in Nodes |-> IF IsActive(n) THEN [ctl[n] EXCEPT !.listed = @ \ {b}] ELSE ctl[n]]
  /\ UNCHANGED <<pipe, acks, net, result, life, ghosts>>

Registered(b) ==
  /\ zk.lives[b] = 0
  /\ zk' = [zk EXCEPT !.lives[b] = life[b]]
  /\ UNCHANGED <<pipe, acks, ctl, net, clients, budget, ghosts>>

BrokersRead(n) ==
  /\ IsActive(n) /\ ctl[n].epoch \notin zk.ended
  /\ <<ctl[n].lives, ctl[n].listed>> # <<zk.lives, Listed>>
  /\ Set(n, [ctl[n] EXCEPT !.lives = zk.lives, !.listed = Listed])
  /\ UNCHANGED <<zk, pipe, acks, net, clients, budget, ghosts>>

\* A broker below the bridge release, or another program, writes to ZooKeeper itself.
DirectWrite(t) ==
  /\ Spend("direct")
  /\ LET exists == [zk.exists EXCEPT ![t] = ~@] IN
     /\ zk' = [zk EXCEPT !.exists = exists]
     /\ truths' = [r \in Requests |-> IF truths[r] = {} \/ IsFinished(r) THEN truths[r]
                                      ELSE truths[r] \cup Facts(exists)]
  /\ UNCHANGED <<pipe, acks, ctl, net, clients, log>>

-------------------------------------------------------------------------------
Progress(n) ==
  \/ BecameActive(n) \/ CommitUnknown(n) \/ CommitAcknowledged(n) \/ CommitConflicted(n)
  \/ BrokersRead(n) \/ Registered(n) \/ (MustResign(n) /\ Resigned(n))
  \/ \E count \in 1..3 : CommitSent(n, count)
  \/ \E r \in Requests : Execution(n, r) \/ DecidedTooLate(n, r) \/ RequestDecided(n, r)
  \/ \E b \in Nodes : ImageAdvanced(n, b)

Next ==
  \/ \E n \in Nodes :
       \/ Progress(n) \/ ClaimSent(n) \/ Resigned(n) \/ OutcomesPruned(n)
       \/ \E r \in Requests, isLate \in BOOLEAN : EnvelopeReceived(n, r, isLate)
       \/ \E kept \in 0..3 : ConnectionLost(n, kept)
       \/ \E b \in Nodes : FloorReported(n, b)
       \/ \E r \in Requests : DeadlinePassed(n, r)
       \/ NodeRestarted(n) \/ Unregistered(n)
  \/ \E e \in Epochs : Applied(e) \/ SessionEnded(e)
  \/ \E r \in Requests : ForwardSent(r) \/ ChannelBroken(r) \/ EnvelopeDelayed(r)
                          \/ TimedOut(r) \/ Responded(r)
  \/ \E t \in Topics : DirectWrite(t)
  \/ ControllerZnodeDeleted

IsAbandoned(e) == \A n \in Nodes : ctl[n].epoch # e  \* its controller has resigned, or is gone

\* Elections end at EpochMax and faults at the budget; then every message arrives.
Fairness ==
  /\ \A n \in Nodes :
       /\ WF_vars(BecameActive(n)) /\ WF_vars(ClaimSent(n)) /\ WF_vars(MustResign(n) /\ Resigned(n))
       /\ WF_vars(CommitUnknown(n)) /\ WF_vars(CommitAcknowledged(n)) /\ WF_vars(CommitConflicted(n))
       /\ WF_vars(CommitSent(n, 1)) /\ WF_vars(BrokersRead(n)) /\ WF_vars(Registered(n))
       /\ \A b \in Nodes : WF_vars(ImageAdvanced(n, b))
       /\ \A r \in Requests : /\ WF_vars(EnvelopeReceived(n, r, FALSE))
                              /\ WF_vars(DecidedTooLate(n, r))
                              /\ WF_vars(Execution(n, r)) /\ WF_vars(RequestDecided(n, r))
  /\ \A e \in Epochs : WF_vars(Applied(e)) /\ WF_vars(IsAbandoned(e) /\ SessionEnded(e))
  /\ \A r \in Requests : WF_vars(ForwardSent(r)) /\ WF_vars(Responded(r))

Spec == Init /\ [][Next]_vars
FairSpec == Spec /\ Fairness

-------------------------------------------------------------------------------
\* Properties.

EffectsOf(r, t) == {i \in DOMAIN log : log[i].req = r /\ log[i].topic = t}
ResultOf(r, t) == IF result[r].how = "answered" THEN result[r].errors[t] ELSE "none"

AtMostOnce == \A r \in Requests : \A t \in Elements(r) : Cardinality(EffectsOf(r, t)) <= 1

OneWriter == \A i \in DOMAIN log : ~log[i].late

AcknowledgedIsDurable ==
  \A r \in Requests : \A t \in Elements(r) : ResultOf(r, t) = "ok" => EffectsOf(r, t) # {}

\* Not TOPIC_ALREADY_EXISTS for the topic that the request itself created.
ErrorMeansNoEffect ==
  \A r \in Requests : \A t \in Elements(r) :
    ResultOf(r, t) \in {"exists", "unknown"} => EffectsOf(r, t) = {}

\* An error was true at some time while the request was in progress.
ErrorWasTrue ==
  \A r \in Requests : \A t \in Elements(r) :
    /\ ResultOf(r, t) = "exists" => <<t, TRUE>> \in truths[r]
    /\ ResultOf(r, t) = "unknown" => <<t, FALSE>> \in truths[r]

\* Floors reject only what has ended.
FloorsRejectNothingOpen == \A r \in Requests : result[r].how # "rejected"

\* The effects of one connection's requests are in the order of the requests.
ConnectionsAreInOrder ==
  \A i, j \in DOMAIN log :
    (/\ Request[log[j].req].after = log[i].req
     /\ ResultOf(log[i].req, log[i].topic) = "ok") => i < j

\* KIP-4: after a success, every broker that is registered knows the change.
SuccessIsVisible ==
  Blocks => \A i \in DOMAIN log :
    ResultOf(log[i].req, log[i].topic) = "ok" =>
      \A b \in Nodes : brokers[b].reads => brokers[b].applied >= log[i].num

EveryRequestEnds == \A r \in Requests : <>(IsFinished(r))

\* Targets: TLC prints the shortest path to each of them (spec/models.py: PATHS).
FirstCopyWasApplied ==
  \E n \in Nodes : /\ IsActive(n) /\ ctl[n].flight # <<>> /\ Head(ctl[n].flight).state = "resent"
                   /\ acks[ctl[n].epoch] # <<>> /\ Head(acks[ctl[n].epoch]) = "counted"
ZombieWasFenced == \E e \in Epochs : "fenced" \in Range(acks[e])
OutcomeWasFound ==
  \E n \in Nodes : IsActive(n) /\ \E r \in ctl[n].inbox : \E o \in ctl[n].outcomes : o[1] = Id(r)
===============================================================================
