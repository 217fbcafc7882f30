package broker

func moreSituations() (list []situation) { return list }
