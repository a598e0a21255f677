"""The user classes of the workers under test, by name: a master needs to know no more of them."""

from locust import User, constant, task


class Chat(User):
    weight = 3
    wait_time = constant(1)

    @task
    def nothing(self):
        """Workers that are no Python decide what their users do."""


class Agent(User):
    wait_time = constant(1)

    @task
    def nothing(self):
        """As above."""
