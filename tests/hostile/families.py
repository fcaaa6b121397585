"""All families of attacks: one line each. `make attack` runs them in this order."""

from __future__ import annotations

from typing import Final

from tests.hostile.browser import attack_the_report
from tests.hostile.damaged_logs import damage_the_logs
from tests.hostile.ensembles import attack_the_ensemble
from tests.hostile.evidence import plant_evidence
from tests.hostile.family import Family
from tests.hostile.full_disks import fill_the_disk
from tests.hostile.many_topics import create_many_topics
from tests.hostile.memory import fill_the_memory
from tests.hostile.other_users import attack_as_another_user
from tests.hostile.policies import hang_the_policy
from tests.hostile.prepared_folders import prepare_folders
from tests.hostile.zookeeper import attack_zookeeper

FAMILIES: Final = (
    Family("evidence", plant_evidence),
    Family("prepared folders", prepare_folders),
    Family("damaged logs", damage_the_logs),
    Family("other users", attack_as_another_user),
    Family("full disks", fill_the_disk),
    Family("report in a browser", attack_the_report),
    Family("ZooKeeper", attack_zookeeper),
    Family("ensembles", attack_the_ensemble),
    Family("hanging policies", hang_the_policy),
    Family("memory", fill_the_memory),
    Family("many topics", create_many_topics),
)
