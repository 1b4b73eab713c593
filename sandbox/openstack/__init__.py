"""OpenStack itself: the real Keystone and Neutron, on SQLite, without a message broker and without agents.

What they are installed from is `requirements.lock`, into an environment of their own (`environment`), since their
libraries do not go together with everybody else's. No machine and no packet moves: networks, routers and ports are
records, as they are for anyone who only talks to the API.
"""
