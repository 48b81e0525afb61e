"""From items and a card to measurements and statistics: one factory, called once per track."""
