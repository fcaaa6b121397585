"""The orders in which Kafka walks its broker configs.

ANSWER_ORDER is the hash order in which a 3.9.1 lists them in DescribeConfigs; fixed, recorded live.
VALIDATION_ORDER is the order of definition: of several bad values the first one here is reported.
"""

from __future__ import annotations

from typing import Final

ANSWER_ORDER: Final = tuple(
    """
    log.cleaner.min.compaction.lag.ms offsets.topic.num.partitions
    sasl.oauthbearer.jwks.endpoint.refresh.ms remote.log.metadata.manager.listener.name
    log.flush.interval.messages controller.socket.timeout.ms principal.builder.class
    log.flush.interval.ms controller.quorum.request.timeout.ms sasl.oauthbearer.expected.audience
    min.insync.replicas remote.log.manager.thread.pool.size group.consumer.max.session.timeout.ms
    num.recovery.threads.per.data.dir ssl.keystore.type zookeeper.ssl.protocol
    controller.quorum.bootstrap.servers sasl.mechanism.inter.broker.protocol
    group.share.record.lock.duration.ms metadata.log.segment.bytes
    fetch.purgatory.purge.interval.requests ssl.endpoint.identification.algorithm
    zookeeper.ssl.keystore.location replica.socket.timeout.ms message.max.bytes
    remote.log.manager.fetch.max.bytes.per.second group.share.session.timeout.ms
    max.connection.creation.rate connections.max.reauth.ms
    remote.log.manager.copy.quota.window.size.seconds log.flush.offset.checkpoint.interval.ms
    zookeeper.clientCnxnSocket zookeeper.ssl.client.enable quota.window.num
    sasl.oauthbearer.clock.skew.seconds group.consumer.min.session.timeout.ms zookeeper.connect
    authorizer.class.name password.encoder.secret num.replica.fetchers
    alter.log.dirs.replication.quota.window.size.seconds sasl.oauthbearer.jwks.endpoint.url
    remote.log.metadata.custom.metadata.max.bytes auto.include.jmx.reporter log.roll.jitter.hours
    telemetry.max.bytes password.encoder.old.secret log.cleaner.delete.retention.ms
    sasl.login.retry.backoff.ms queued.max.requests log.cleaner.threads sasl.kerberos.service.name
    socket.request.max.bytes group.consumer.max.size group.consumer.assignors
    remote.log.storage.system.enable log.message.timestamp.type zookeeper.ssl.keystore.type
    connections.max.idle.ms zookeeper.set.acl delegation.token.expiry.time.ms max.connections
    transaction.state.log.num.partitions controller.quorum.election.timeout.ms
    listener.security.protocol.map log.retention.hours client.quota.callback.class
    remote.log.storage.manager.impl.prefix ssl.provider
    delete.records.purgatory.purge.interval.requests producer.id.expiration.ms log.roll.ms
    ssl.cipher.suites controller.quorum.retry.backoff.ms
    remote.log.manager.copy.max.bytes.per.second zookeeper.ssl.keystore.password
    broker.session.timeout.ms security.inter.broker.protocol group.share.heartbeat.interval.ms
    delegation.token.secret.key remote.log.manager.fetch.quota.window.num remote.fetch.max.wait.ms
    node.id replica.high.watermark.checkpoint.interval.ms replication.quota.window.size.seconds
    eligible.leader.replicas.enable log.local.retention.ms remote.log.reader.threads
    sasl.kerberos.ticket.renew.window.factor group.coordinator.threads
    zookeeper.connection.timeout.ms metrics.recording.level password.encoder.cipher.algorithm
    log.dir.failure.timeout.ms transaction.partition.verification.enable
    group.share.min.heartbeat.interval.ms ssl.principal.mapping.rules replica.selector.class
    remote.log.manager.fetch.quota.window.size.seconds max.connections.per.ip background.threads
    request.timeout.ms log.message.format.version sasl.login.class
    remote.log.index.file.cache.total.size.bytes log.dir log.segment.bytes
    replica.fetch.response.max.bytes group.consumer.heartbeat.interval.ms
    group.max.session.timeout.ms controller.listener.names log.message.timestamp.after.max.ms
    controller.quorum.append.linger.ms log.segment.delete.delay.ms log.retention.minutes log.dirs
    controlled.shutdown.enable early.start.listeners log.message.timestamp.before.max.ms
    remote.log.manager.copier.thread.pool.size socket.connection.setup.timeout.max.ms
    log.message.timestamp.difference.max.ms sasl.oauthbearer.scope.claim.name
    password.encoder.key.length sasl.login.refresh.min.period.seconds
    sasl.oauthbearer.expected.issuer sasl.login.read.timeout.ms
    transaction.abort.timed.out.transaction.cleanup.interval.ms sasl.kerberos.kinit.cmd
    log.cleaner.io.max.bytes.per.second auto.leader.rebalance.enable
    leader.imbalance.check.interval.seconds log.cleaner.min.cleanable.ratio
    group.share.min.record.lock.duration.ms replica.lag.time.max.ms num.network.threads
    group.share.min.session.timeout.ms ssl.keystore.key sasl.client.callback.handler.class
    compression.gzip.level metrics.num.samples socket.send.buffer.bytes
    group.coordinator.rebalance.protocols password.encoder.keyfactory.algorithm
    remote.log.storage.manager.class.name socket.receive.buffer.bytes
    sasl.oauthbearer.sub.claim.name replica.fetch.min.bytes broker.rack
    zookeeper.ssl.truststore.password unclean.leader.election.enable
    sasl.oauthbearer.jwks.endpoint.retry.backoff.ms offsets.retention.check.interval.ms
    producer.purgatory.purge.interval.requests controller.quorum.voters metrics.sample.window.ms
    log.retention.check.interval.ms group.consumer.session.timeout.ms
    sasl.login.refresh.window.jitter leader.imbalance.per.broker.percentage
    controller.quota.window.num metric.reporters sasl.oauthbearer.token.endpoint.url
    auto.create.topics.enable group.share.partition.max.record.locks ssl.engine.factory.class
    replica.socket.receive.buffer.bytes zookeeper.ssl.truststore.location ssl.allow.dn.changes
    replica.fetch.wait.max.ms password.encoder.iterations group.consumer.min.heartbeat.interval.ms
    default.replication.factor ssl.truststore.password sasl.kerberos.principal.to.local.rules
    log.preallocate remote.log.reader.max.pending.tasks transactional.id.expiration.ms
    control.plane.listener.name transaction.state.log.replication.factor num.io.threads
    sasl.login.refresh.buffer.seconds group.share.max.heartbeat.interval.ms
    offsets.commit.required.acks connection.failed.authentication.delay.ms delete.topic.enable
    quota.window.size.seconds ssl.truststore.type offsets.commit.timeout.ms
    zookeeper.ssl.ocsp.enable broker.heartbeat.interval.ms group.share.max.record.lock.duration.ms
    sasl.mechanism.controller.protocol log.cleaner.max.compaction.lag.ms
    zookeeper.ssl.enabled.protocols remote.log.storage.manager.class.path log.retention.ms
    alter.log.dirs.replication.quota.window.num log.cleaner.enable
    controller.quorum.fetch.timeout.ms offsets.load.buffer.size ssl.client.auth
    controlled.shutdown.max.retries offsets.topic.replication.factor zookeeper.ssl.truststore.type
    transaction.state.log.min.isr ssl.secure.random.implementation sasl.kerberos.ticket.renew.jitter
    ssl.trustmanager.algorithm zookeeper.session.timeout.ms log.local.retention.bytes
    log.retention.bytes controller.quota.window.size.seconds remote.log.metadata.manager.impl.prefix
    sasl.jaas.config sasl.kerberos.min.time.before.relogin offsets.retention.minutes
    replica.fetch.backoff.ms inter.broker.protocol.version kafka.metrics.reporters
    group.share.delivery.count.limit ssl.allow.san.changes compression.zstd.level
    remote.log.manager.copy.quota.window.num num.partitions ssl.keystore.certificate.chain
    socket.connection.setup.timeout.ms broker.id.generation.enable listeners ssl.enabled.protocols
    inter.broker.listener.name alter.config.policy.class.name
    delegation.token.expiry.check.interval.ms log.flush.scheduler.interval.ms
    zookeeper.max.in.flight.requests remote.log.manager.expiration.thread.pool.size
    log.index.size.max.bytes ssl.keymanager.algorithm sasl.login.callback.handler.class
    replica.fetch.max.bytes zookeeper.ssl.crl.enable sasl.server.callback.handler.class
    group.share.max.groups log.cleaner.dedupe.buffer.size log.cleaner.io.buffer.size
    create.topic.policy.class.name ssl.truststore.certificates socket.listen.backlog.size
    controlled.shutdown.retry.backoff.ms sasl.server.max.receive.size security.providers
    metadata.log.max.snapshot.interval.ms compression.lz4.level log.roll.hours log.cleanup.policy
    initial.broker.registration.timeout.ms log.flush.start.offset.checkpoint.interval.ms
    log.roll.jitter.ms transaction.state.log.segment.bytes offsets.topic.segment.bytes
    metadata.max.idle.interval.ms remote.log.metadata.manager.class.name
    sasl.login.retry.backoff.max.ms remote.log.manager.task.interval.ms
    group.initial.rebalance.delay.ms log.index.interval.bytes log.cleaner.backoff.ms
    ssl.truststore.location offset.metadata.max.bytes ssl.keystore.password
    zookeeper.metadata.migration.enable fetch.max.bytes metadata.max.retention.bytes
    compression.type sasl.login.connect.timeout.ms max.connections.per.ip.overrides
    group.consumer.max.heartbeat.interval.ms sasl.login.refresh.window.factor
    remote.log.metadata.manager.class.path kafka.metrics.polling.interval.secs
    metadata.log.max.record.bytes.between.snapshots metadata.max.retention.ms
    controller.quorum.election.backoff.max.ms group.share.max.size
    max.incremental.fetch.session.cache.slots delegation.token.master.key ssl.key.password
    reserved.broker.max.id transaction.remove.expired.transaction.cleanup.interval.ms
    log.message.downconversion.enable ssl.protocol metadata.log.segment.ms
    transaction.state.log.load.buffer.size ssl.keystore.location group.coordinator.append.linger.ms
    sasl.enabled.mechanisms num.replica.alter.log.dirs.threads group.share.max.session.timeout.ms
    zookeeper.ssl.cipher.suites group.min.session.timeout.ms log.cleaner.io.buffer.load.factor
    transaction.max.timeout.ms metadata.log.dir process.roles group.max.size
    sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms delegation.token.max.lifetime.ms
    max.request.partition.size.limit broker.id offsets.topic.compression.codec
    zookeeper.ssl.endpoint.identification.algorithm replication.quota.window.num
    advertised.listeners queued.max.request.bytes
    """.split()  # noqa: SIM905 (hundreds of names read better so)
)

VALIDATION_ORDER: Final = tuple(
    """
    remote.log.storage.system.enable remote.log.storage.manager.impl.prefix
    remote.log.metadata.manager.impl.prefix remote.log.storage.manager.class.name
    remote.log.storage.manager.class.path remote.log.metadata.manager.class.name
    remote.log.metadata.manager.class.path remote.log.metadata.manager.listener.name
    remote.log.metadata.custom.metadata.max.bytes remote.log.index.file.cache.total.size.bytes
    remote.log.manager.thread.pool.size remote.log.manager.copier.thread.pool.size
    remote.log.manager.expiration.thread.pool.size remote.log.manager.task.interval.ms
    remote.log.reader.threads remote.log.reader.max.pending.tasks log.local.retention.ms
    log.local.retention.bytes remote.log.manager.copy.max.bytes.per.second
    remote.log.manager.copy.quota.window.num remote.log.manager.copy.quota.window.size.seconds
    remote.log.manager.fetch.max.bytes.per.second remote.log.manager.fetch.quota.window.num
    remote.log.manager.fetch.quota.window.size.seconds remote.fetch.max.wait.ms zookeeper.connect
    zookeeper.session.timeout.ms zookeeper.connection.timeout.ms zookeeper.set.acl
    zookeeper.max.in.flight.requests zookeeper.ssl.client.enable zookeeper.clientCnxnSocket
    zookeeper.ssl.keystore.location zookeeper.ssl.keystore.password zookeeper.ssl.keystore.type
    zookeeper.ssl.truststore.location zookeeper.ssl.truststore.password
    zookeeper.ssl.truststore.type zookeeper.ssl.protocol zookeeper.ssl.enabled.protocols
    zookeeper.ssl.cipher.suites zookeeper.ssl.endpoint.identification.algorithm
    zookeeper.ssl.crl.enable zookeeper.ssl.ocsp.enable broker.id.generation.enable
    reserved.broker.max.id broker.id message.max.bytes num.io.threads
    num.replica.alter.log.dirs.threads background.threads request.timeout.ms
    socket.connection.setup.timeout.ms socket.connection.setup.timeout.max.ms authorizer.class.name
    early.start.listeners broker.rack controlled.shutdown.max.retries
    controlled.shutdown.retry.backoff.ms controlled.shutdown.enable delete.topic.enable
    compression.type compression.gzip.level compression.lz4.level compression.zstd.level
    max.incremental.fetch.session.cache.slots fetch.max.bytes max.request.partition.size.limit
    metadata.log.max.record.bytes.between.snapshots metadata.log.max.snapshot.interval.ms
    process.roles node.id initial.broker.registration.timeout.ms broker.heartbeat.interval.ms
    broker.session.timeout.ms controller.listener.names sasl.mechanism.controller.protocol
    metadata.log.dir metadata.log.segment.bytes metadata.log.segment.ms metadata.max.retention.bytes
    metadata.max.retention.ms metadata.max.idle.interval.ms zookeeper.metadata.migration.enable
    eligible.leader.replicas.enable listeners advertised.listeners listener.security.protocol.map
    control.plane.listener.name socket.send.buffer.bytes socket.receive.buffer.bytes
    socket.request.max.bytes socket.listen.backlog.size max.connections.per.ip
    max.connections.per.ip.overrides max.connections max.connection.creation.rate
    connections.max.idle.ms connection.failed.authentication.delay.ms queued.max.requests
    queued.max.request.bytes num.network.threads controller.socket.timeout.ms
    default.replication.factor replica.lag.time.max.ms replica.socket.timeout.ms
    replica.socket.receive.buffer.bytes replica.fetch.max.bytes replica.fetch.wait.max.ms
    replica.fetch.backoff.ms replica.fetch.min.bytes replica.fetch.response.max.bytes
    num.replica.fetchers replica.high.watermark.checkpoint.interval.ms
    fetch.purgatory.purge.interval.requests producer.purgatory.purge.interval.requests
    delete.records.purgatory.purge.interval.requests auto.leader.rebalance.enable
    leader.imbalance.per.broker.percentage leader.imbalance.check.interval.seconds
    unclean.leader.election.enable security.inter.broker.protocol inter.broker.protocol.version
    inter.broker.listener.name replica.selector.class group.min.session.timeout.ms
    group.max.session.timeout.ms group.initial.rebalance.delay.ms group.max.size
    group.coordinator.rebalance.protocols group.coordinator.threads
    group.coordinator.append.linger.ms offset.metadata.max.bytes offsets.load.buffer.size
    offsets.topic.replication.factor offsets.topic.num.partitions offsets.topic.segment.bytes
    offsets.topic.compression.codec offsets.retention.minutes offsets.retention.check.interval.ms
    offsets.commit.timeout.ms offsets.commit.required.acks group.consumer.session.timeout.ms
    group.consumer.min.session.timeout.ms group.consumer.max.session.timeout.ms
    group.consumer.heartbeat.interval.ms group.consumer.min.heartbeat.interval.ms
    group.consumer.max.heartbeat.interval.ms group.consumer.max.size group.consumer.assignors
    group.share.session.timeout.ms group.share.min.session.timeout.ms
    group.share.max.session.timeout.ms group.share.heartbeat.interval.ms
    group.share.min.heartbeat.interval.ms group.share.max.heartbeat.interval.ms group.share.max.size
    log.cleaner.threads log.cleaner.io.max.bytes.per.second log.cleaner.dedupe.buffer.size
    log.cleaner.io.buffer.size log.cleaner.io.buffer.load.factor log.cleaner.backoff.ms
    log.cleaner.min.cleanable.ratio log.cleaner.enable log.cleaner.delete.retention.ms
    log.cleaner.min.compaction.lag.ms log.cleaner.max.compaction.lag.ms num.partitions log.dir
    log.dirs log.segment.bytes log.roll.ms log.roll.hours log.roll.jitter.ms log.roll.jitter.hours
    log.retention.ms log.retention.minutes log.retention.hours log.retention.bytes
    log.retention.check.interval.ms log.cleanup.policy log.index.size.max.bytes
    log.index.interval.bytes log.flush.interval.messages log.segment.delete.delay.ms
    log.flush.scheduler.interval.ms log.flush.interval.ms log.flush.offset.checkpoint.interval.ms
    log.flush.start.offset.checkpoint.interval.ms log.preallocate num.recovery.threads.per.data.dir
    auto.create.topics.enable min.insync.replicas log.message.format.version
    log.message.timestamp.type log.message.timestamp.difference.max.ms
    log.message.timestamp.before.max.ms log.message.timestamp.after.max.ms
    create.topic.policy.class.name alter.config.policy.class.name log.message.downconversion.enable
    log.dir.failure.timeout.ms group.share.delivery.count.limit group.share.record.lock.duration.ms
    group.share.min.record.lock.duration.ms group.share.max.record.lock.duration.ms
    group.share.max.groups group.share.partition.max.record.locks transaction.state.log.min.isr
    transaction.state.log.load.buffer.size transaction.state.log.replication.factor
    transaction.state.log.num.partitions transaction.state.log.segment.bytes
    transaction.partition.verification.enable producer.id.expiration.ms
    transactional.id.expiration.ms transaction.max.timeout.ms
    transaction.abort.timed.out.transaction.cleanup.interval.ms
    transaction.remove.expired.transaction.cleanup.interval.ms controller.quorum.voters
    controller.quorum.bootstrap.servers controller.quorum.election.timeout.ms
    controller.quorum.fetch.timeout.ms controller.quorum.election.backoff.max.ms
    controller.quorum.append.linger.ms controller.quorum.request.timeout.ms
    controller.quorum.retry.backoff.ms metrics.num.samples metrics.sample.window.ms metric.reporters
    metrics.recording.level auto.include.jmx.reporter kafka.metrics.reporters
    kafka.metrics.polling.interval.secs telemetry.max.bytes quota.window.num
    replication.quota.window.num alter.log.dirs.replication.quota.window.num
    controller.quota.window.num quota.window.size.seconds replication.quota.window.size.seconds
    alter.log.dirs.replication.quota.window.size.seconds controller.quota.window.size.seconds
    client.quota.callback.class connections.max.reauth.ms sasl.server.max.receive.size
    security.providers principal.builder.class ssl.client.auth ssl.principal.mapping.rules
    ssl.allow.dn.changes ssl.allow.san.changes ssl.protocol ssl.provider ssl.enabled.protocols
    ssl.keystore.type ssl.keystore.location ssl.keystore.password ssl.key.password ssl.keystore.key
    ssl.keystore.certificate.chain ssl.truststore.type ssl.truststore.location
    ssl.truststore.password ssl.truststore.certificates ssl.keymanager.algorithm
    ssl.trustmanager.algorithm ssl.endpoint.identification.algorithm
    ssl.secure.random.implementation ssl.cipher.suites ssl.engine.factory.class
    sasl.mechanism.inter.broker.protocol sasl.enabled.mechanisms sasl.server.callback.handler.class
    sasl.kerberos.principal.to.local.rules sasl.jaas.config sasl.client.callback.handler.class
    sasl.login.class sasl.login.callback.handler.class sasl.kerberos.service.name
    sasl.kerberos.kinit.cmd sasl.kerberos.ticket.renew.window.factor
    sasl.kerberos.ticket.renew.jitter sasl.kerberos.min.time.before.relogin
    sasl.login.refresh.window.factor sasl.login.refresh.window.jitter
    sasl.login.refresh.min.period.seconds sasl.login.refresh.buffer.seconds
    sasl.login.connect.timeout.ms sasl.login.read.timeout.ms sasl.login.retry.backoff.max.ms
    sasl.login.retry.backoff.ms sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name
    sasl.oauthbearer.token.endpoint.url sasl.oauthbearer.jwks.endpoint.url
    sasl.oauthbearer.jwks.endpoint.refresh.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.ms
    sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms sasl.oauthbearer.clock.skew.seconds
    sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer delegation.token.master.key
    delegation.token.secret.key delegation.token.max.lifetime.ms delegation.token.expiry.time.ms
    delegation.token.expiry.check.interval.ms password.encoder.secret password.encoder.old.secret
    password.encoder.keyfactory.algorithm password.encoder.cipher.algorithm
    password.encoder.key.length password.encoder.iterations
    """.split()  # noqa: SIM905 (hundreds of names read better so)
)
