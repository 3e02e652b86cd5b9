"""Who answers: fixed tables, logged real data, and environments that draw."""
