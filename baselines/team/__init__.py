"""DDPG for teams, Fair-E and Fair-ER, and the evaluation of teams."""
