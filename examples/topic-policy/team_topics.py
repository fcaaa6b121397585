"""Each topic belongs to a team: `TEAM.NAME`. Only topics below `tmp.` may be deleted."""

from bridgehead.policy import PolicyViolationException, TopicManagementPolicy


class TeamTopics(TopicManagementPolicy):
    def configure(self, configs):
        self.teams = set(configs["team.topics.teams"].split(","))

    def validate_create_topic(self, request, cluster):
        team, _, name = request.topic.partition(".")
        if not name or team not in {*self.teams, "tmp"}:
            teams = ", ".join(sorted(self.teams))
            raise PolicyViolationException(f"{request.topic}: begin the name with a team: {teams}.")

    def validate_alter_topic(self, request, cluster):
        pass

    def validate_delete_topic(self, request, cluster):
        if not request.topic.startswith("tmp."):
            raise PolicyViolationException(f"{request.topic} is kept: ask its team.")

    def validate_delete_records(self, request, cluster):
        pass
