"""KIP-108: create topic policy."""

from __future__ import annotations

from tests.kips.mutant import Mutant

POLICIES = "node/assembly/policies.py"
EVALUATION = "controller/loop/policy_evaluation.py"
CREATE_TOPICS = "controller/apis/create_topics.py"
CREATE_TOPICS_MESSAGE = "bridgehead/kafka_wire/messages/create_topics.py"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        ("108.1", "108.5"),
        POLICIES,
        "        self._create.validate(\n",
        "        CreateTopicPolicy.RequestMetadata.__init__ or self._create.validate(\n",
    ),
    Mutant(
        ("108.2",),
        POLICIES,
        "                self._create.close()\n",
        "                self._create.configure({})\n",
    ),
    Mutant(
        ("108.3",),
        POLICIES,
        "policy.configure(MappingProxyType(dict(properties)))",
        "policy.configure(MappingProxyType({}))",
    ),
    Mutant(
        ("108.4",),
        POLICIES,
        "        found = getattr(importlib.import_module(module_name), class_name, None)\n"
        "    except (Exception, SystemExit) as error:\n",
        "        found = getattr(importlib.import_module(module_name), class_name, None)\n"
        "    except ModuleNotFoundError:\n"
        "        return None\n"
        "    except (Exception, SystemExit) as error:\n",
    ),
    Mutant(
        ("108.5",),
        POLICIES,
        "num_partitions=state.num_partitions if generated else None,",
        "num_partitions=state.num_partitions,",
    ),
    Mutant(
        ("108.6",),
        "bridgehead/kafka_wire/errors.py",
        "    POLICY_VIOLATION = 44",
        "    POLICY_VIOLATION = 1044",
    ),
    Mutant(
        ("108.7", "108.11"),
        CREATE_TOPICS,
        "error_code=outcome.error, error_message=outcome.message, configs=[]",
        "error_code=outcome.error, error_message=None, configs=[]",
    ),
    Mutant(
        ("108.7",),
        CREATE_TOPICS_MESSAGE,
        'error_message: str | None = wire(STRING, versions="1+"',
        'error_message: str | None = wire(STRING, versions="2+"',
    ),
    Mutant(
        ("108.8",),
        CREATE_TOPICS_MESSAGE,
        'validate_only: bool = wire(BOOL, versions="1+")',
        'validate_only: bool = wire(BOOL, versions="2+")',
    ),
    Mutant(
        ("108.8", "108.12"),
        CREATE_TOPICS,
        "            if request.validate_only:\n",
        "            if False:\n",
    ),
    Mutant(
        ("108.10",),
        CREATE_TOPICS,
        "                elements.append(Decided(name, Outcome.of(error)))\n",
        "                check = partial(creation, context.client.principal, name, (), {}, True)\n"
        "                elements.append(Decided(name, Outcome.of(error), policy_check=check))\n",
    ),
    Mutant(
        ("108.13",),
        EVALUATION,
        "            elements.append(decided)\n        if not unevaluated:",
        "            elements.append(decided)\n"
        "        if any(each.outcome.error == ErrorCode.POLICY_VIOLATION for each in elements):\n"
        "            failed = Outcome(ErrorCode.POLICY_VIOLATION)\n"
        "            elements = [Decided(each.element, failed) for each in elements]\n"
        "        if not unevaluated:",
    ),
    Mutant(
        ("108.14",),
        CREATE_TOPICS,
        "        if name in image.topics and name not in image.deletions:\n",
        "        if False:\n",
    ),
    Mutant(
        ("108.15",),
        POLICIES,
        "self._alter.validate(AlterConfigPolicy.RequestMetadata(resource, requested))",
        "pass",
    ),
    Mutant(
        ("108.16",),
        EVALUATION,
        "        if self._policies is None:\n            return decision\n",
        "        if self._policies is None:\n            return replace(decision, elements=[])\n",
    ),
    Mutant(
        ("108.17",),
        "node/assembly/policy_runner.py",
        "            async with asyncio.timeout(timeout_ms / 1000):\n",
        "            async with asyncio.timeout(timeout_ms / 100):\n",
    ),
    Mutant(
        ("108.17",),
        "node/assembly/policy_runner.py",
        "    except BaseException as anything:",
        "    except ValueError as anything:",
    ),
    Mutant(
        ("108.21",),
        POLICIES,
        "_load(ALTER, names[ALTER], properties) if names[ALTER] else None,",
        "_load(ALTER, names[ALTER], properties) if names[ALTER] != names[CREATE] else None,",
    ),
    Mutant(
        ("108.9",),
        "controller/loop/policy_evaluation.py",
        "        cluster = ImageClusterState(self.image)\n"
        "        for key, check in self.checks.items():",
        "        cluster = ImageClusterState(self.image)\n"
        "        for key, check in reversed(self.checks.items()):",
    ),
)
